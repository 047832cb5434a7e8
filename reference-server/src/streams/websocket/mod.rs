//! WebSocket: the handshake by our own rules, since Kubernetes has some about subprotocols, and the frames by tungstenite.

pub(super) mod channels;
pub(super) mod handshake;
pub(super) mod messages;
pub(super) mod socket;
