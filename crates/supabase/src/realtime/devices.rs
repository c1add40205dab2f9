//! Reports to the server which devices are connected.

use gleaner_http::Caller;

/// The names that a device and its application give themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub name: String,
    pub app: Option<String>,
}

/// Receives which devices are connected.
pub trait Devices: Send + Sync + 'static {
    /// The device sent a frame on a socket where this caller has joined. Returns false when the caller is not a user who can own a
    /// device.
    fn connected(&self, device: &Device, caller: &Caller) -> bool;
}
