//! Certificates and keys from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

#[derive(Clone, Debug)]
pub enum TlsPolicy {
    Absent,
    /// If the client wants.
    Offered(Arc<ServerConfig>),
    Required(Arc<ServerConfig>),
}

/// Files in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authority that clients' certificates must come from; none: any client may connect.
    pub client_authority: Option<PathBuf>,
}

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("{path} cannot be used: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("the certificate and the key cannot be used together: {0}")]
    Pair(rustls::Error),
}

fn bad(path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| bad(path, error))?;
    if list.is_empty() {
        return Err(bad(path, "it holds no certificate"));
    }
    Ok(list)
}

impl TlsFiles {
    pub fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| bad(&self.key, error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Pair)?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| bad(path, error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .map_err(|error| bad(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key);
        config.map(Arc::new).map_err(TlsError::Pair)
    }
}
