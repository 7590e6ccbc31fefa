# SRTP and SRTCP of one peer: AES-GCM on libcrypto (RFC 7714), AES-CM through libsrtp (RFC 3711).

cdef enum:
    LABEL_RTP_KEY = 0
    LABEL_RTP_SALT = 2
    LABEL_RTCP_KEY = 3
    LABEL_RTCP_SALT = 5


cdef int srtp_derive(uint8_t *out, int length, int label, const uint8_t *key, int key_length, const uint8_t *salt) noexcept nogil:
    """A session key or salt of at most 32 bytes (RFC 3711 section 4.3, key derivation rate 0)."""
    cdef uint8_t iv[16]
    cdef uint8_t zeros[32]
    cdef int written = 0
    cdef void *context = crypto.context_new()
    if context == NULL:
        return -1
    memset(iv, 0, 16)
    memset(zeros, 0, 32)
    memcpy(iv, salt, 12)
    iv[7] ^= <uint8_t>label
    cdef int good = crypto.encrypt_init(context, crypto.ctr_128() if key_length == 16 else crypto.ctr_256(), NULL, key, iv)
    good = good and crypto.encrypt_update(context, out, &written, zeros, length)
    crypto.context_free(context)
    return 0 if good and written == length else -1


cdef int gcm_open(Gcm *gcm, int key_label, const uint8_t *key, int key_length, const uint8_t *salt, bint encrypts) noexcept nogil:
    cdef uint8_t session_key[32]
    if srtp_derive(session_key, key_length, key_label, key, key_length, salt) < 0:
        return -1
    if srtp_derive(gcm.salt, 12, key_label + 2, key, key_length, salt) < 0:
        return -1
    gcm.context = crypto.context_new()
    if gcm.context == NULL:
        return -1
    cdef const void *cipher = crypto.gcm_128() if key_length == 16 else crypto.gcm_256()
    cdef int good
    if encrypts:
        good = crypto.encrypt_init(gcm.context, cipher, NULL, session_key, NULL)
    else:
        good = crypto.decrypt_init(gcm.context, cipher, NULL, session_key, NULL)
    memset(session_key, 0, 32)
    return 0 if good else -1


cdef void gcm_close(Gcm *gcm) noexcept nogil:
    if gcm.context != NULL:
        crypto.context_free(gcm.context)
    memset(gcm, 0, sizeof(Gcm))


cdef void srtp_forget_keys(Engine *engine, Peer *peer) noexcept nogil:
    """The sessions of libsrtp belong to a Python object, which is let go of once the peer no longer names them."""
    if peer.session != NULL:
        # Without memory it is never let go of: a leak, but nothing dangles.
        vector_add(&engine.old_sessions, peer.session)
    gcm_close(&peer.rx)
    gcm_close(&peer.rx_rtcp)
    gcm_close(&peer.tx)
    gcm_close(&peer.tx_rtcp)
    peer.srtp_rx = peer.srtp_tx = peer.session = NULL
    peer.keyed = peer.direct = False
    peer.rtcp_index = 0


cdef int srtp_set_gcm(Peer *peer, const uint8_t *rx, const uint8_t *tx, int key_length, const uint8_t *rx_salt, const uint8_t *tx_salt) noexcept nogil:
    if gcm_open(&peer.rx, LABEL_RTP_KEY, rx, key_length, rx_salt, False) < 0:
        return -1
    if gcm_open(&peer.rx_rtcp, LABEL_RTCP_KEY, rx, key_length, rx_salt, False) < 0:
        return -1
    if gcm_open(&peer.tx, LABEL_RTP_KEY, tx, key_length, tx_salt, True) < 0:
        return -1
    if gcm_open(&peer.tx_rtcp, LABEL_RTCP_KEY, tx, key_length, tx_salt, True) < 0:
        return -1
    peer.direct = True
    return 0


cdef inline void gcm_iv(uint8_t *iv, const uint8_t *salt, uint32_t ssrc, uint64_t index) noexcept nogil:
    """`index` is the 48-bit SRTP index, or the 31-bit SRTCP index (RFC 7714 sections 8.1 and 9.1)."""
    cdef int at
    iv[0] = iv[1] = 0
    write32(iv + 2, ssrc)
    write16(iv + 6, <uint32_t>(index >> 32) & 0xFFFF)
    write32(iv + 8, <uint32_t>index)
    for at in range(12):
        iv[at] ^= salt[at]


cdef inline int gcm_seal(Gcm *gcm, const uint8_t *iv, const uint8_t *head, int head_length, const uint8_t *plain, int length, uint8_t *out) noexcept nogil:
    """Write ciphertext and tag; its length, or -1."""
    cdef int written = 0
    if not crypto.encrypt_init(gcm.context, NULL, NULL, NULL, iv):
        return -1
    if not crypto.encrypt_update(gcm.context, NULL, &written, head, head_length):
        return -1
    if length and not crypto.encrypt_update(gcm.context, out, &written, plain, length):
        return -1
    if not crypto.encrypt_final(gcm.context, out + length, &written):
        return -1
    if not crypto.control(gcm.context, EVP_CTRL_GET_TAG, TAG, out + length):
        return -1
    return length + TAG


cdef inline int gcm_unseal(Gcm *gcm, const uint8_t *iv, const uint8_t *head, int head_length, const uint8_t *tail, int tail_length, uint8_t *data, int length) noexcept nogil:
    """Decrypt `length` bytes at `data` in place; the tag follows them. `tail` is more associated data. 0, or -1."""
    cdef int written = 0
    if not crypto.decrypt_init(gcm.context, NULL, NULL, NULL, iv):
        return -1
    if not crypto.control(gcm.context, EVP_CTRL_SET_TAG, TAG, data + length):
        return -1
    if not crypto.decrypt_update(gcm.context, NULL, &written, head, head_length):
        return -1
    if tail_length and not crypto.decrypt_update(gcm.context, NULL, &written, tail, tail_length):
        return -1
    if length and not crypto.decrypt_update(gcm.context, data, &written, data, length):
        return -1
    return 0 if crypto.decrypt_final(gcm.context, data + length, &written) > 0 else -1


# -- replay: the same estimate and window as libsrtp's, so that both profiles refuse the same packets

cdef inline int64_t replay_estimate(RxStream *stream, uint16_t sequence, int64_t *delta) noexcept nogil:
    """The 48-bit index of a sequence number, and how far it is ahead of the newest."""
    cdef int64_t index = <int64_t>stream.index
    cdef int64_t guess
    if index > 0x8000:
        guess = index + sequence_delta_libsrtp(sequence, <uint16_t>index)
    else:
        guess = sequence
    delta[0] = guess - index
    return guess


cdef inline int sequence_delta_libsrtp(int sequence, int local) noexcept nogil:
    """Unlike `sequence_delta` it takes exactly half the range as the cycle in hand."""
    if local < 0x8000:
        return sequence - local - 0x10000 if sequence - local > 0x8000 else sequence - local
    return sequence - local + 0x10000 if local - 0x8000 > sequence else sequence - local


cdef inline bint replay_fresh(RxStream *stream, int64_t delta) noexcept nogil:
    if delta > 0:
        return True
    if -delta >= WINDOW_WORDS * 64:
        return False
    return not stream.window[-delta >> 6] >> (-delta & 63) & 1


cdef void replay_add(RxStream *stream, int64_t delta) noexcept nogil:
    """Bit 0 of the window is the newest packet."""
    cdef int words, at
    cdef uint64_t bits
    if delta <= 0:
        stream.window[-delta >> 6] |= <uint64_t>1 << (-delta & 63)
        return
    stream.index += delta
    if delta >= WINDOW_WORDS * 64:
        memset(stream.window, 0, sizeof(stream.window))
    else:
        words = <int>(delta >> 6)
        bits = delta & 63
        for at in range(WINDOW_WORDS - 1, -1, -1):
            if at < words:
                stream.window[at] = 0
                continue
            stream.window[at] = stream.window[at - words] << bits
            if bits and at - words > 0:
                stream.window[at] |= stream.window[at - words - 1] >> (64 - bits)
    stream.window[0] |= 1


cdef inline bint rtcp_fresh(RxStream *stream, uint32_t index) noexcept nogil:
    if index < stream.rtcp_start:
        return False
    cdef uint32_t ahead = index - stream.rtcp_start
    return ahead >= 128 or not stream.rtcp_seen[ahead >> 6] >> (ahead & 63) & 1


cdef void rtcp_add(RxStream *stream, uint32_t index) noexcept nogil:
    cdef uint32_t ahead = index - stream.rtcp_start
    cdef uint32_t moved
    if ahead >= 128:
        moved = ahead - 127
        stream.rtcp_start += moved
        if moved >= 128:
            stream.rtcp_seen[0] = stream.rtcp_seen[1] = 0
        elif moved >= 64:
            stream.rtcp_seen[0] = stream.rtcp_seen[1] >> (moved - 64)
            stream.rtcp_seen[1] = 0
        else:
            stream.rtcp_seen[0] = stream.rtcp_seen[0] >> moved | stream.rtcp_seen[1] << (64 - moved)
            stream.rtcp_seen[1] = stream.rtcp_seen[1] >> moved
        ahead = 127
    stream.rtcp_seen[ahead >> 6] |= <uint64_t>1 << (ahead & 63)


# -- datagrams in

cdef int gcm_unprotect_rtp(Peer *peer, RxStream *stream, uint8_t *data, int length, uint32_t ssrc, int64_t *delta) noexcept nogil:
    cdef int head = 12 + 4 * (data[0] & 0x0F)
    if data[0] & 0x10:
        if head + 4 > length:
            return -1
        head += 4 + 4 * read16(data + head + 2)
    if head + TAG > length:
        return -1
    cdef uint8_t iv[12]
    cdef int64_t index = replay_estimate(stream, read16(data + 2), delta)
    # Before the first cycle there is nothing: such a packet is older than the stream.
    if index < 0 or not replay_fresh(stream, delta[0]):
        return -1
    gcm_iv(iv, peer.rx.salt, ssrc, <uint64_t>index)
    if gcm_unseal(&peer.rx, iv, data, head, NULL, 0, data + head, length - head - TAG) < 0:
        return -1
    return length - TAG


cdef int gcm_unprotect_rtcp(Peer *peer, RxStream *stream, uint8_t *data, int length, uint32_t ssrc, uint32_t *index) noexcept nogil:
    if length < 8 + TAG + 4:
        return -1
    cdef uint8_t iv[12]
    cdef uint32_t word = read32(data + length - 4)
    index[0] = word & 0x7FFFFFFF
    if not word & 0x80000000u or not rtcp_fresh(stream, index[0]):
        return -1
    gcm_iv(iv, peer.rx_rtcp.salt, ssrc, index[0])
    if gcm_unseal(&peer.rx_rtcp, iv, data, 8, data + length - 4, 4, data + 8, length - 8 - TAG - 4) < 0:
        return -1
    return length - TAG - 4


cdef int srtp_unprotect(Engine *engine, Peer *peer, uint8_t *data, int length, uint32_t ssrc, bint rtcp) noexcept nogil:
    """Decrypt in place: the plain length, or -1 when it was dropped and counted. `length` is at least 12."""
    cdef RxStream fresh
    cdef int64_t delta = 0
    cdef uint32_t index = 0
    cdef int plain = -1
    if not peer.keyed:
        engine.totals.drops[NO_KEYS] += 1
        return -1
    cdef RxStream *stream = <RxStream *>table_get(&peer.streams, ssrc, 0, 0)
    if stream == NULL:
        if peer.streams.count >= MAX_SSRCS:
            engine.totals.drops[TOO_MANY_SSRCS] += 1
            return -1
        memset(&fresh, 0, sizeof(RxStream))
        stream = &fresh
    if length > MAX_DATAGRAM:
        plain = -1
    elif peer.direct:
        if rtcp:
            plain = gcm_unprotect_rtcp(peer, stream, data, length, ssrc, &index)
        else:
            plain = gcm_unprotect_rtp(peer, stream, data, length, ssrc, &delta)
    else:
        plain = length
        if (crypto.unprotect_rtcp if rtcp else crypto.unprotect)(peer.srtp_rx, data, &plain):
            plain = -1
    if plain < 0:
        engine.totals.drops[NOT_AUTHENTIC] += 1
        return -1
    # Only what is authentic makes the plane remember an SSRC.
    if stream == &fresh:
        stream = <RxStream *>calloc(1, sizeof(RxStream))
        if stream == NULL or table_put(&peer.streams, ssrc, 0, 0, stream) < 0:
            free(stream)
            engine.totals.drops[NO_MEMORY] += 1
            return -1
    if peer.direct:
        if rtcp:
            rtcp_add(stream, index)
        else:
            replay_add(stream, delta)
    peer.packets_in += 1
    peer.bytes_in += length
    return plain


# -- datagrams out

cdef inline int srtp_protect(Peer *peer, uint8_t *out, int head_length, const uint8_t *payload, int length, uint32_t ssrc, int64_t index) noexcept nogil:
    """`out` holds the header and has room for the payload and 144 bytes more. The datagram's length, or -1."""
    cdef uint8_t iv[12]
    cdef int written
    if index < 0 or head_length + length > MAX_PLAIN:
        return -1
    if peer.direct:
        gcm_iv(iv, peer.tx.salt, ssrc, <uint64_t>index)
        written = gcm_seal(&peer.tx, iv, out, head_length, payload, length, out + head_length)
        return -1 if written < 0 else head_length + written
    memcpy(out + head_length, payload, length)
    written = head_length + length
    return -1 if crypto.protect(peer.srtp_tx, out, &written) else written


cdef int srtp_protect_rtcp(Peer *peer, uint8_t *out, const uint8_t *compound, int length) noexcept nogil:
    """Write the datagram to `out`, which has room for 144 bytes more than the compound. Its length, or -1."""
    cdef uint8_t iv[12]
    cdef uint8_t head[12]
    cdef int written
    if length > MAX_PLAIN:
        return -1
    if not peer.direct:
        memcpy(out, compound, length)
        written = length
        return -1 if crypto.protect_rtcp(peer.srtp_tx, out, &written) else written
    peer.rtcp_index += 1
    memcpy(head, compound, 8)
    write32(head + 8, peer.rtcp_index | 0x80000000u)
    gcm_iv(iv, peer.tx_rtcp.salt, read32(compound + 4), peer.rtcp_index)
    memcpy(out, compound, 8)
    written = gcm_seal(&peer.tx_rtcp, iv, head, 12, compound + 8, length - 8, out + 8)
    if written < 0:
        return -1
    memcpy(out + 8 + written, head + 8, 4)
    return 8 + written + 4
