//! The guarantees of every transport, in one suite: direct PostgreSQL, our server's own routes, and the functions of a Supabase
//! project.

pub(crate) mod relay;
pub(crate) mod stage;

mod acts;
mod claims;
mod hearing;

/// Runs each test once per transport.
macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        promises!(@over direct, Direct, $($promise),*);
        promises!(@over native, Native, $($promise),*);
        promises!(@over rpc, Rpc, $($promise),*);
    };
    (@over $module:ident, $over:ident, $($promise:ident),*) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $promise() -> anyhow::Result<()> {
                    let stage = $crate::conformance::stage::stage($crate::conformance::stage::Over::$over).await?;
                    super::$promise(&stage).await
                }
            )*
        }
    };
}
use promises;
