"""What probably keeps a dialer out. A side that refuses in a TLS handshake closes the connection and says no more."""

from kubebeast_envserver.config import EnvServerConfig

DIALS = 3
"""So many that end in the same way in a row are no accident."""

# As BoringSSL, of grpcio, and OpenSSL say it.
_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "certificate verify failed")
_OTHER_NAME = ("Hostname Verification Check failed", "is not in peer certificate")
_NO_TLS = ("WRONG_VERSION_NUMBER", "wrong version number")
_CLOSED = ("Socket closed", "Connection reset by peer", "Broken pipe")


class DialAdvice:
    """Gives each piece of advice once, after DIALS dials in a row that speak for it."""

    def __init__(self, config: EnvServerConfig) -> None:
        self._config = config
        self._cause = ""
        self._count = 0

    def note_failure(self, reason: str) -> str:
        """A dial without a Welcome, and how it ended; returns the advice, if now is the time for one, else ""."""
        cause = _cause(self._config, reason)
        self._count = self._count + 1 if cause == self._cause else 1
        self._cause = cause
        return cause if self._count == DIALS else ""

    def note_success(self) -> None:
        self._cause, self._count = "", 0


def _cause(config: EnvServerConfig, reason: str) -> str:
    """Empty where nobody has refused: the learner is not there, or has said why."""
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
