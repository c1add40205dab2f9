//! `GET /v1/media/{activity}/{n}`: the n-th file of an activity, counted from zero.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use gleaner_http::database::Error as Database;
use gleaner_http::describe::{Denied, NotFound};
use gleaner_http::{Authenticator, Caller, Path, WireError, with_caller};
use gleaner_ingest::Channel;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_postgres::types::{Json, Type};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::medium::{Medium, Place, media};
use super::serve::{passing, span, stored};
use super::{Failure, Media};
use crate::files::{self, Files};

#[derive(Debug, Clone, FromRef)]
struct Shared {
    media: Arc<Media>,
    authenticator: Authenticator,
}

/// The route, to be merged into the server's.
pub fn router(media: Arc<Media>, authenticator: impl Into<Authenticator>) -> OpenApiRouter {
    OpenApiRouter::default().routes(routes!(show)).with_state(Shared { media, authenticator: authenticator.into() })
}

/// Read as text, so that a malformed id is a file that does not exist.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct FilePath {
    #[param(value_type = Uuid, example = "1f0c7a52-0000-4000-8000-000000000001")]
    activity: String,
    /// Which of its files, from zero.
    #[param(value_type = u32, example = 0)]
    n: String,
}

/// Get a recording or attachment
///
/// For callers that may read the activity. A file that is not stored here is fetched: one that a webhook announced from its
/// provider, with the channel's credentials; one that was added by hand from its URL, without any. `Range` works for stored
/// files.
#[utoipa::path(
    get,
    path = "/v1/media/{activity}/{n}",
    operation_id = "getMedium",
    tag = "media",
    params(FilePath, ("Range" = Option<String>, Header, description = "One range of bytes.", example = "bytes=0-1023")),
    responses(
        (status = 200, description = "The file, in its own type.", content_type = "*/*", body = Value),
        (status = 206, description = "The part of it.", content_type = "*/*", body = Value),
        (status = 410, description = "There was a file, and it is gone.", body = WireError),
        (status = 416, description = "The file is shorter than that."),
        (status = 502, description = "The provider does not return the file.", body = WireError),
        Denied, NotFound,
    )
)]
async fn show(
    State(state): State<Arc<Media>>,
    caller: Caller,
    Path(FilePath { activity, n }): Path<FilePath>,
    headers: HeaderMap,
) -> Result<Response, WireError> {
    let (Ok(activity), Ok(n)) = (activity.parse::<Uuid>(), n.parse::<usize>()) else { return Err(Failure::Unknown.into()) };
    Ok(state.show(&caller, activity, n, &headers).await?)
}

impl Media {
    async fn show(&self, caller: &Caller, activity: Uuid, n: usize, headers: &HeaderMap) -> Result<Response, Failure> {
        let (medium, channel) = self.find(caller, activity, n).await?;
        // People may write to a row that no webhook recorded, so only this activity's own files are accepted.
        let ours = Files::of_activity(activity, 0);
        let folder = ours.trim_end_matches('0');
        if let Place::File(path) = &medium.place {
            let path = path.strip_prefix(folder).map(|_| path.as_str()).ok_or(Failure::Unknown)?;
            return stored(&self.files, path, &medium, headers).await?.ok_or(Failure::Gone);
        }
        let kept = format!("{folder}fetched-{n}");
        if let Some(response) = self.stored(&kept, &medium, headers).await? {
            return Ok(response);
        }
        let channel = match channel {
            Some(id) => self.open_channel(id).await?,
            None => None,
        };
        let fetched = self.fetch(&medium.place, channel).await?;
        if !self.options.keep {
            return Ok(passing(fetched, &medium, None));
        }
        if let (None, Some(kind)) = (&medium.content_type, &fetched.content_type) {
            self.files.put(&described(&kept), kind.clone()).await.map_err(not_kept)?;
        }
        if span(headers).is_some() {
            // A part was requested: fetch and store the whole file first, then serve the part from our store.
            self.files.put_stream(&kept, fetched.stream, self.options.limit).await.map_err(not_kept)?;
            return self.stored(&kept, &medium, headers).await?.ok_or(Failure::Gone);
        }
        Ok(passing(fetched, &medium, self.files.put_beside(&kept, self.options.limit).ok()))
    }

    /// A file that was fetched before, with the provider's content type if the row has none.
    async fn stored(&self, kept: &str, medium: &Medium, headers: &HeaderMap) -> Result<Option<Response>, Failure> {
        let mut medium = medium.clone();
        if medium.content_type.is_none()
            && let Some(found) = self.files.get(&described(kept)).await.map_err(not_kept)?
        {
            medium.content_type = String::from_utf8(found.bytes().await.map_err(not_kept)?.to_vec()).ok();
        }
        stored(&self.files, kept, &medium, headers).await
    }

    /// The file's description, if the caller may read the row, and the channel that recorded it. People and agents can write to
    /// the row, so that what it says itself comes without a channel.
    async fn find(&self, caller: &Caller, activity: Uuid, n: usize) -> Result<(Medium, Option<Uuid>), Failure> {
        let found = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                transaction
                    .query_typed_opt(
                        "select a.raw_data, a.metadata from public.activities as a where a.id = $1",
                        &[(&activity, Type::UUID)],
                    )
                    .await
                    .map_err(Database::doing("look for the activity"))
            })
        });
        let row = match found.await {
            Ok(row) => row.ok_or(Failure::Unknown)?,
            // A role that may not read activities at all finds none.
            Err(error) if error.code().is_some_and(|code| code.code() == "42501") => return Err(Failure::Unknown),
            Err(error) => return Err(Failure::Away(error.to_string())),
        };
        let (mut all, channel) = match self.recorded(activity).await.map_err(|error| Failure::Away(error.to_string()))? {
            Some((all, channel)) => (all, Some(channel)),
            None => {
                let object = |column: usize| match row.get::<_, Option<Value>>(column) {
                    Some(Value::Object(object)) => object,
                    _ => Map::new(),
                };
                (media(&object(0), &object(1)), None)
            }
        };
        if n >= all.len() {
            return Err(Failure::Unknown);
        }
        Ok((all.swap_remove(n), channel))
    }

    /// The files that the webhook endpoint recorded, and their channel. With our own rights: callers may not read the table.
    async fn recorded(&self, activity: Uuid) -> Result<Option<(Vec<Medium>, Uuid)>, Database> {
        let client = self.pool.get().await.map_err(|error| Database::Connect(error.to_string()))?;
        let row = client
            .query_typed_opt("select media, provider_id from gleaner.media_reference where activity_id = $1", &[(&activity, Type::UUID)])
            .await
            .map_err(Database::doing("look for the activity's files"))?;
        Ok(row.map(|row| (row.get::<_, Json<Vec<Medium>>>(0).0, row.get(1))))
    }

    async fn open_channel(&self, id: Uuid) -> Result<Option<Arc<Channel>>, Failure> {
        match self.channels.get(&id.to_string()).await {
            Ok(opened) => Ok(Some(Arc::new(opened.channel))),
            Err(crate::channels::Error::Unknown(_)) => Ok(None),
            Err(error) => Err(Failure::Away(error.to_string())),
        }
    }
}

/// The path where the content type of a fetched file is stored.
fn described(kept: &str) -> String {
    format!("{kept}.type")
}

fn not_kept(error: files::Error) -> Failure {
    match error {
        files::Error::Source(why) => Failure::Provider(why),
        files::Error::TooLarge { limit } => Failure::Provider(format!("the file has more than {limit} bytes")),
        other => Failure::Away(other.to_string()),
    }
}

impl From<Failure> for WireError {
    fn from(failure: Failure) -> Self {
        let text = failure.to_string();
        match failure {
            Failure::Unknown => Self::new(StatusCode::NOT_FOUND, "PGRST116", text),
            Failure::Gone => Self::new(StatusCode::GONE, "media_gone", text),
            Failure::Refused(_) => Self::new(StatusCode::FORBIDDEN, "media_refused", text),
            Failure::Provider(_) => Self::new(StatusCode::BAD_GATEWAY, "media_provider", text),
            Failure::Away(why) => {
                tracing::warn!(%why, "a file could not be served");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database or the file store does not answer")
            }
        }
    }
}
