//! Notifies the server of requests that succeeded, without taking part in them.

/// A function call and its result.
#[derive(Debug)]
pub struct Call<'a> {
    pub schema: &'a str,
    pub function: &'a str,
    pub role: &'a str,
    /// All claims of the caller's token, as JSON.
    pub claims: &'a str,
    /// The headers of the request as JSON, names in lower case.
    pub headers: &'a str,
    /// The body of the request.
    pub arguments: &'a [u8],
    /// The rows of the answer as JSON, joined by commas.
    pub rows: &'a str,
}

/// Is notified of each request that succeeded. Runs before the client gets its response, so it must not block.
pub trait Observe: Send + Sync + 'static {
    /// A function was called.
    fn called(&self, call: &Call<'_>);

    /// Rows of a table or view were written.
    fn written(&self, schema: &str, relation: &str);
}

/// The default observer, which does nothing.
pub(super) struct NoObserver;

impl Observe for NoObserver {
    fn called(&self, _: &Call<'_>) {}

    fn written(&self, _: &str, _: &str) {}
}
