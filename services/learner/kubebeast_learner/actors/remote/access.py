"""Access to the learner: checks of its TLS and token files, and warnings about missing ones."""

import logging

from kubebeast_common.access.addresses import is_local
from kubebeast_common.access.tls_files import TlsError, TlsFiles, read_pem
from kubebeast_common.access.token_file import TokenFileError, authorization
from kubebeast_learner.config import ConfigError, PoolConfig
from kubebeast_learner.config.pool import expanded

logger = logging.getLogger(__name__)


def check_files(pool: PoolConfig) -> None:
    """Raises ConfigError naming the flag if a certificate, key or token file is unusable; never shows its content."""
    files = TlsFiles(cert=expanded(pool.tls_cert), key=expanded(pool.tls_key), ca=expanded(pool.tls_ca))
    try:
        authorization(expanded(pool.token_file))
        read_pem(files)
    except (TokenFileError, TlsError) as error:
        raise ConfigError(str(error)) from error


def warn_about_access(pool: PoolConfig, address: str) -> None:
    """Logs a warning for each missing protection. address: the listening address, "" for none."""
    if address and not is_local(address):
        if pool.tls_cert is None:
            logger.warning(
                "listening on %s without TLS: traffic can be read and changed; see --tls-cert and --tls-key",
                address,
            )
        if pool.token_file is None and pool.tls_ca is None:
            logger.warning(
                "listening on %s without a token: every host that reaches it can join; see --token-file and --tls-ca",
                address,
            )
    if pool.token_file is not None and pool.tls_ca is None and not all(map(is_local, pool.dial_targets)):
        logger.warning("dialing %s without TLS: the token can be read in transit; see --tls-ca", pool.dial)
