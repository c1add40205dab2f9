//! How error responses are described in `/openapi.json`. A handler names the groups that apply to it:
//!
//! ```ignore
//! #[utoipa::path(get, path = "/v1/things/{thing}", responses((status = 200, body = Thing), Denied, NotFound))]
//! ```

use std::collections::BTreeMap;

use utoipa::openapi::response::Response;
use utoipa::openapi::{Components, Content, HeaderBuilder, ObjectBuilder, Ref, RefOr, ResponseBuilder, Type};
use utoipa::{IntoResponses, ToSchema as _};

use crate::WireError;

/// Each error response: status, name, description.
const ERRORS: [(&str, &str, &str); 8] = [
    ("400", "Invalid", "The request is invalid; the message says why."),
    ("401", "Unauthorized", "There is no key, or it is not valid."),
    ("403", "Forbidden", "The caller may not do this."),
    ("404", "NotFound", "It does not exist, or the caller may not see it."),
    ("409", "Conflict", "It conflicts with what exists."),
    ("413", "TooLarge", "The body is too large."),
    ("500", "Internal", "Internal error. The server's log has the cause under the request id."),
    ("503", "Unavailable", "The database cannot be reached. Nothing was changed; try again."),
];

/// Defines a group of error responses.
macro_rules! group {
    ($(#[$about:meta])* $name:ident: $($status:literal),+) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                refer(&[$($status),+])
            }
        }
    };
}

group!(
    /// Every route that takes a caller.
    Denied: "401", "403", "500", "503"
);
group!(
    /// Parameters of the path or the query may be wrong.
    Invalid: "400"
);
group!(
    /// The body may be wrong or too large.
    InvalidBody: "400", "413"
);
group!(
    /// The thing that the path names may not exist.
    NotFound: "404"
);
group!(
    /// The request may conflict with what exists.
    Conflict: "409"
);

fn refer(statuses: &[&str]) -> BTreeMap<String, RefOr<Response>> {
    let chosen = ERRORS.iter().filter(|(status, ..)| statuses.contains(status));
    chosen.map(|(status, name, _)| ((*status).to_owned(), Ref::from_response_name(*name).into())).collect()
}

/// The components that the groups refer to. The server adds them to its description.
pub fn components() -> Components {
    let mut schemas = vec![(WireError::name().into_owned(), <WireError as utoipa::PartialSchema>::schema())];
    WireError::schemas(&mut schemas);
    let responses = ERRORS.iter().map(|(status, name, description)| {
        let error = Content::new(Some(Ref::from_schema_name(WireError::name())));
        let mut response = ResponseBuilder::new().description(*description).content("application/json", error);
        if *status == "503" {
            let seconds = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::Integer).build())).build();
            response = response.header("Retry-After", seconds);
        }
        ((*name).to_owned(), RefOr::T(response.build()))
    });
    let mut components = Components::new();
    components.schemas.extend(schemas);
    components.responses.extend(responses);
    components
}
