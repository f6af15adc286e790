"""Probable causes of failed dials. A peer that rejects a TLS handshake closes the connection without a reason."""

from kubebeast_envserver.config import EnvServerConfig

DIALS = 3
"""Dials in a row that must end in the same way: fewer may be an accident."""

# Spellings of BoringSSL, in grpcio, and of OpenSSL.
_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "certificate verify failed")
_OTHER_NAME = ("Hostname Verification Check failed", "is not in peer certificate")
_NO_TLS = ("WRONG_VERSION_NUMBER", "wrong version number")
_CLOSED = ("Socket closed", "Connection reset by peer", "Broken pipe")


class DialAdvice:
    """Advice on failed dials: each piece once, after DIALS dials in a row with its cause."""

    def __init__(self, config: EnvServerConfig) -> None:
        self._config = config
        self._cause = ""
        self._count = 0

    def note_failure(self, reason: str) -> str:
        """Counts a dial that ended without a Welcome, for `reason`; returns the advice that is due, if any."""
        cause = _cause(self._config, reason)
        self._count = self._count + 1 if cause == self._cause else 1
        self._cause = cause
        return cause if self._count == DIALS else ""

    def note_success(self) -> None:
        self._cause, self._count = "", 0


def _cause(config: EnvServerConfig, reason: str) -> str:
    """Returns the cause; empty if no peer refused, i.e. the learner is absent or has sent its reason."""
    if _says(reason, _UNTRUSTED):
        return f"its certificate is of no authority in tls_ca = {config.tls_ca!r}"
    if _says(reason, _OTHER_NAME):
        return "its certificate is for another name than the dialed one, which tls_server_name can replace"
    if _says(reason, _NO_TLS):
        return "it seems to have no TLS: give it tls_cert and tls_key, or this env-server no tls_ca"
    if not _says(reason, _CLOSED):
        return ""
    if not config.tls_ca:
        probably = "demands TLS, so give tls_ca"
    elif not config.tls_cert:
        probably = "demands a certificate, so give tls_cert and tls_key"
    else:
        probably = f"does not trust the authority of tls_cert = {config.tls_cert!r}"
    return f"it closes connections at once and probably {probably}; or this host is above its max_offences"


def _says(reason: str, spellings: tuple[str, ...]) -> bool:
    return any(spelling in reason for spelling in spellings)
