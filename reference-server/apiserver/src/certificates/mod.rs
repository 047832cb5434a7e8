//! X.509 certificates: those of clients, requests for them, and the authority that signs them.

mod authority;
mod client;
pub(crate) mod front_proxy;
mod request;
mod usages;

pub use self::authority::{CertificateAuthority, SignError, Validity};
pub use self::client::{ClientCa, ClientCaError, PeerCertificates};
pub use self::request::{CertificateRequest, RequestError};
pub use self::usages::Usages;
