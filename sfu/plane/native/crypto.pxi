# libcrypto and libsrtp by address: both live in pylibsrtp's own shared object, nothing is linked.

ctypedef void *(*EvpNew)() noexcept nogil
ctypedef void (*EvpFree)(void *context) noexcept nogil
ctypedef const void *(*EvpCipher)() noexcept nogil
ctypedef int (*EvpInit)(
    void *context, const void *cipher, void *engine, const uint8_t *key, const uint8_t *iv
) noexcept nogil
ctypedef int (*EvpUpdate)(void *context, uint8_t *out, int *out_length, const uint8_t *data, int length) noexcept nogil
ctypedef int (*EvpFinal)(void *context, uint8_t *out, int *out_length) noexcept nogil
ctypedef int (*EvpControl)(void *context, int what, int argument, void *pointer) noexcept nogil
ctypedef int (*SrtpProcess)(void *session, void *packet, int *length) noexcept nogil
ctypedef int (*SrtpAdd)(void *session, const void *policy) noexcept nogil
ctypedef int (*SrtpSetRoc)(void *session, uint32_t ssrc, uint32_t roc) noexcept nogil
ctypedef int (*SrtpRemove)(void *session, uint32_t ssrc) noexcept nogil

cdef enum:
    EVP_CTRL_GET_TAG = 0x10
    EVP_CTRL_SET_TAG = 0x11

cdef struct Crypto:
    EvpNew context_new
    EvpFree context_free
    EvpCipher gcm_128
    EvpCipher gcm_256
    EvpCipher ctr_128
    EvpCipher ctr_256
    EvpInit encrypt_init
    EvpUpdate encrypt_update
    EvpFinal encrypt_final
    EvpInit decrypt_init
    EvpUpdate decrypt_update
    EvpFinal decrypt_final
    EvpControl control
    SrtpProcess protect
    SrtpProcess unprotect
    SrtpProcess protect_rtcp
    SrtpProcess unprotect_rtcp
    SrtpAdd add_stream
    SrtpRemove remove_stream
    SrtpSetRoc set_roc          # NULL where it is hidden

cdef Crypto crypto
cdef bint direct_gcm = False


cdef void resolve_crypto(dict addresses):
    """Take the addresses that `sfu.plane.symbols` has found; without libcrypto's, GCM goes through libsrtp as well."""
    global direct_gcm
    crypto.protect = <SrtpProcess><uintptr_t>addresses["srtp_protect"]
    crypto.unprotect = <SrtpProcess><uintptr_t>addresses["srtp_unprotect"]
    crypto.protect_rtcp = <SrtpProcess><uintptr_t>addresses["srtp_protect_rtcp"]
    crypto.unprotect_rtcp = <SrtpProcess><uintptr_t>addresses["srtp_unprotect_rtcp"]
    crypto.add_stream = <SrtpAdd><uintptr_t>addresses["srtp_add_stream"]
    crypto.set_roc = <SrtpSetRoc><uintptr_t>addresses.get("srtp_set_stream_roc", 0)
    crypto.remove_stream = <SrtpRemove><uintptr_t>addresses["srtp_remove_stream"]
    direct_gcm = "EVP_CIPHER_CTX_new" in addresses
    if not direct_gcm:
        return
    crypto.context_new = <EvpNew><uintptr_t>addresses["EVP_CIPHER_CTX_new"]
    crypto.context_free = <EvpFree><uintptr_t>addresses["EVP_CIPHER_CTX_free"]
    crypto.gcm_128 = <EvpCipher><uintptr_t>addresses["EVP_aes_128_gcm"]
    crypto.gcm_256 = <EvpCipher><uintptr_t>addresses["EVP_aes_256_gcm"]
    crypto.ctr_128 = <EvpCipher><uintptr_t>addresses["EVP_aes_128_ctr"]
    crypto.ctr_256 = <EvpCipher><uintptr_t>addresses["EVP_aes_256_ctr"]
    crypto.encrypt_init = <EvpInit><uintptr_t>addresses["EVP_EncryptInit_ex"]
    crypto.encrypt_update = <EvpUpdate><uintptr_t>addresses["EVP_EncryptUpdate"]
    crypto.encrypt_final = <EvpFinal><uintptr_t>addresses["EVP_EncryptFinal_ex"]
    crypto.decrypt_init = <EvpInit><uintptr_t>addresses["EVP_DecryptInit_ex"]
    crypto.decrypt_update = <EvpUpdate><uintptr_t>addresses["EVP_DecryptUpdate"]
    crypto.decrypt_final = <EvpFinal><uintptr_t>addresses["EVP_DecryptFinal_ex"]
    crypto.control = <EvpControl><uintptr_t>addresses["EVP_CIPHER_CTX_ctrl"]
