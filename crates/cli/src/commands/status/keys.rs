//! The project's keys, for programs that speak to the API.

use gleaner_http::Role;

use crate::App;
use crate::output::{WARN, paint};

/// Names and values, as Supabase's own tool prints them. None when the secret they are signed with cannot be read.
pub(crate) fn project_keys(app: &App) -> Option<[(&'static str, String); 2]> {
    let access = app
        .target
        .home()
        .map_err(|error| error.to_string())
        .and_then(|home| gleaner_server::load_access(home.path()).map_err(|e| e.to_string()));
    match access {
        Ok(access) => Some([("ANON_KEY", access.project_key(Role::Anon)), ("SERVICE_ROLE_KEY", access.project_key(Role::Service))]),
        Err(error) => {
            app.out.note(paint(WARN, format!("No project keys: {error}")));
            None
        }
    }
}
