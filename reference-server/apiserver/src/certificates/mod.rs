//! X.509 certificates: requests for them, and the authority of the server that signs them.

mod authority;
mod request;
mod usages;

pub use self::authority::{CertificateAuthority, SignError, Validity};
pub use self::request::{CertificateRequest, RequestError};
pub use self::usages::Usages;
