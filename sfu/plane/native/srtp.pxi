# SRTP and SRTCP of one peer: AES-GCM on libcrypto (RFC 7714), AES-CM through libsrtp (RFC 3711).

from shared.rtc import srtp

cpdef enum:
    MAX_PLAIN = 1456
    REPLAY_WINDOW = 1024

cdef enum:
    TAG = 16
    WINDOW_WORDS = REPLAY_WINDOW // 64
    LABEL_RTP_KEY = 0
    LABEL_RTP_SALT = 2
    LABEL_RTCP_KEY = 3
    LABEL_RTCP_SALT = 5

cdef int MAX_PROTECTED = srtp.MAX_PROTECTED
cdef int HALF_RANGE = srtp.HALF_RANGE

cdef struct Gcm:
    void *context               # EVP_CIPHER_CTX with its key set
    uint8_t salt[12]

cdef struct RxStream:
    bint heard                  # RTP has come
    uint64_t index              # SRTP's 48-bit index of the newest packet
    uint64_t window[WINDOW_WORDS]
    uint32_t rtcp_start
    uint64_t rtcp_seen[2]
    int64_t last                # how many packets had come when its last one did

cdef struct Srtp:
    bint direct                 # GCM on libcrypto itself; else libsrtp
    Gcm rx
    Gcm rx_rtcp
    Gcm tx
    Gcm tx_rtcp
    void *srtp_rx
    void *srtp_tx
    uint32_t *rx_policy         # an srtp_policy_t: how its SSRC is given, then the SSRC
    void *session               # the Python object that owns both, with a reference of ours
    uint32_t rtcp_index


cdef int srtp_derive(
    uint8_t *out, int length, int label, const uint8_t *key, int key_length, const uint8_t *salt
) noexcept nogil:
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
    cdef const void *cipher = crypto.ctr_128() if key_length == 16 else crypto.ctr_256()
    cdef int good = crypto.encrypt_init(context, cipher, NULL, key, iv)
    good = good and crypto.encrypt_update(context, out, &written, zeros, length)
    crypto.context_free(context)
    return 0 if good and written == length else -1


cdef int gcm_open(
    Gcm *gcm, int key_label, const uint8_t *key, int key_length, const uint8_t *salt, bint encrypts
) noexcept nogil:
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


cdef void *srtp_close(Srtp *keys) noexcept nogil:
    """Forget the keys. The Python object that owns libsrtp's sessions, whose reference is the caller's now; or NULL."""
    cdef void *session = keys.session
    gcm_close(&keys.rx)
    gcm_close(&keys.rx_rtcp)
    gcm_close(&keys.tx)
    gcm_close(&keys.tx_rtcp)
    memset(keys, 0, sizeof(Srtp))
    return session


cdef int srtp_set_gcm(
    Srtp *keys, const uint8_t *rx, const uint8_t *tx, int key_length, const uint8_t *rx_salt, const uint8_t *tx_salt
) noexcept nogil:
    if gcm_open(&keys.rx, LABEL_RTP_KEY, rx, key_length, rx_salt, False) < 0:
        return -1
    if gcm_open(&keys.rx_rtcp, LABEL_RTCP_KEY, rx, key_length, rx_salt, False) < 0:
        return -1
    if gcm_open(&keys.tx, LABEL_RTP_KEY, tx, key_length, tx_salt, True) < 0:
        return -1
    if gcm_open(&keys.tx_rtcp, LABEL_RTCP_KEY, tx, key_length, tx_salt, True) < 0:
        return -1
    keys.direct = True
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


cdef inline int gcm_seal(
    Gcm *gcm, const uint8_t *iv, const uint8_t *head, int head_length, const uint8_t *plain, int length, uint8_t *out
) noexcept nogil:
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


cdef inline int gcm_unseal(
    Gcm *gcm, const uint8_t *iv, const uint8_t *head, int head_length, const uint8_t *tail, int tail_length,
    uint8_t *data, int length,
) noexcept nogil:
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

cdef int gcm_unprotect_rtp(
    Srtp *keys, RxStream *stream, uint8_t *data, int length, uint32_t ssrc, int64_t *delta
) noexcept nogil:
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
    gcm_iv(iv, keys.rx.salt, ssrc, <uint64_t>index)
    if gcm_unseal(&keys.rx, iv, data, head, NULL, 0, data + head, length - head - TAG) < 0:
        return -1
    return length - TAG


cdef int gcm_unprotect_rtcp(
    Srtp *keys, RxStream *stream, uint8_t *data, int length, uint32_t ssrc, uint32_t *index
) noexcept nogil:
    if length < 8 + TAG + 4:
        return -1
    cdef uint8_t iv[12]
    cdef uint32_t word = read32(data + length - 4)
    index[0] = word & 0x7FFFFFFF
    if not word & 0x80000000u or not rtcp_fresh(stream, index[0]):
        return -1
    gcm_iv(iv, keys.rx_rtcp.salt, ssrc, index[0])
    if gcm_unseal(&keys.rx_rtcp, iv, data, 8, data + length - 4, 4, data + 8, length - 8 - TAG - 4) < 0:
        return -1
    return length - TAG - 4


cdef int srtp_unprotect_first(
    Srtp *keys, RxStream *stream, uint8_t *data, int length, uint32_t ssrc, int64_t *delta
) noexcept nogil:
    """The first packet of an SSRC, not longer than MAX_PROTECTED; its numbers may have wrapped once already."""
    cdef uint8_t kept[2048]
    cdef int plain = length
    cdef bint by_rtcp           # its RTCP came first: libsrtp has a stream for both
    memcpy(kept, data, length)
    if keys.direct:
        plain = gcm_unprotect_rtp(keys, stream, data, length, ssrc, delta)
    elif crypto.unprotect(keys.srtp_rx, data, &plain):
        plain = -1
    if plain >= 0 or read16(kept + 2) >= HALF_RANGE or crypto.set_roc == NULL:
        return plain
    memcpy(data, kept, length)
    if keys.direct:
        stream.index = 1 << 16
        plain = gcm_unprotect_rtp(keys, stream, data, length, ssrc, delta)
        if plain < 0:
            stream.index = 0
        return plain
    by_rtcp = crypto.set_roc(keys.srtp_rx, ssrc, 1) == 0
    if not by_rtcp:
        keys.rx_policy[1] = ssrc
        if crypto.add_stream(keys.srtp_rx, keys.rx_policy):
            return -1
        crypto.set_roc(keys.srtp_rx, ssrc, 1)
    plain = length
    if crypto.unprotect(keys.srtp_rx, data, &plain):
        if by_rtcp:
            crypto.set_roc(keys.srtp_rx, ssrc, 0)
        else:
            crypto.remove_stream(keys.srtp_rx, network_order(ssrc))
        return -1
    return plain


# -- datagrams out

cdef inline int srtp_protect(
    Srtp *keys, uint8_t *out, int head_length, const uint8_t *payload, int length, uint32_t ssrc, int64_t index
) noexcept nogil:
    """`out` holds the header and has room for the payload and 144 bytes more. The datagram's length, or -1."""
    cdef uint8_t iv[12]
    cdef int written
    if index < 0 or head_length + length > MAX_PLAIN:
        return -1
    if keys.direct:
        gcm_iv(iv, keys.tx.salt, ssrc, <uint64_t>index)
        written = gcm_seal(&keys.tx, iv, out, head_length, payload, length, out + head_length)
        return -1 if written < 0 else head_length + written
    memcpy(out + head_length, payload, length)
    written = head_length + length
    return -1 if crypto.protect(keys.srtp_tx, out, &written) else written


cdef int srtp_protect_rtcp(Srtp *keys, uint8_t *out, const uint8_t *compound, int length) noexcept nogil:
    """Write the datagram to `out`, which has room for 144 bytes more than the compound. Its length, or -1."""
    cdef uint8_t iv[12]
    cdef uint8_t head[12]
    cdef int written
    if length > MAX_PLAIN:
        return -1
    if not keys.direct:
        memcpy(out, compound, length)
        written = length
        return -1 if crypto.protect_rtcp(keys.srtp_tx, out, &written) else written
    keys.rtcp_index += 1
    memcpy(head, compound, 8)
    write32(head + 8, keys.rtcp_index | 0x80000000u)
    gcm_iv(iv, keys.tx_rtcp.salt, read32(compound + 4), keys.rtcp_index)
    memcpy(out, compound, 8)
    written = gcm_seal(&keys.tx_rtcp, iv, head, 12, compound + 8, length - 8, out + 8)
    if written < 0:
        return -1
    memcpy(out + 8 + written, head + 8, 4)
    return 8 + written + 4
