//! The parts of requests and responses that several acts share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use gleaner::Outcome;
use gleaner::queue::{Answer, Held};
use gleaner_http::WireError;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses, PartialSchema, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct QueuePath {
    /// The queue's name.
    #[param(example = "jobs")]
    pub(crate) queue: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RowPath {
    /// The queue's name.
    #[param(example = "jobs")]
    pub(crate) queue: String,
    /// The row's key.
    #[param(example = "7")]
    pub(crate) key: String,
}

/// A value of a user's column. Programs may send it as a number.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Text {
    Text(String),
    Number(i64),
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// A row that the caller holds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeldRow {
    pub(crate) key: Text,
    /// The lease from the claim.
    pub(crate) lease: i64,
}

impl From<HeldRow> for Held {
    fn from(row: HeldRow) -> Self {
        Self::new(row.key.to_string(), row.lease)
    }
}

/// One held row or many.
pub(crate) type HeldRows = OneOrMany<HeldRow>;

/// One row or many: `{"key", "lease", …}` or `{"items": [{"key", "lease", …}]}`.
#[derive(Debug)]
pub(crate) struct OneOrMany<T> {
    pub(crate) items: Vec<T>,
    pub(crate) tenant: Option<Text>,
    pub(crate) single: bool,
}

/// Deserialized without `#[serde(untagged)]`, whose error would only say that no variant matches.
impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut body = Map::deserialize(deserializer)?;
        let tenant = body.remove("tenant").map(serde_json::from_value).transpose().map_err(D::Error::custom)?.flatten();
        let Some(items) = body.remove("items") else {
            let item = serde_json::from_value(Value::Object(body)).map_err(D::Error::custom)?;
            return Ok(Self { items: vec![item], tenant, single: true });
        };
        if let Some(name) = body.keys().next() {
            return Err(D::Error::custom(format_args!("unknown field `{name}` beside `items`, expected `tenant`")));
        }
        Ok(Self { items: serde_json::from_value(items).map_err(D::Error::custom)?, tenant, single: false })
    }
}

/// What the deserializer above accepts: the fields of `T` and a tenant, or a list of `T` and a tenant.
impl<T: ToSchema> PartialSchema for OneOrMany<T> {
    fn schema() -> RefOr<Schema> {
        let tenant = || Ref::from_schema_name(Text::name());
        let mut one = T::schema();
        if let RefOr::T(Schema::Object(object)) = &mut one {
            object.properties.insert("tenant".to_owned(), tenant().into());
        }
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let many = ObjectBuilder::new().property("items", items).property("tenant", tenant()).required("items");
        let many = many.additional_properties(Some(openapi::schema::AdditionalProperties::FreeForm(false)));
        OneOfBuilder::new().item(one).item(many).description(Some("One row, or `items` of them.")).into()
    }
}

impl<T: ToSchema> ToSchema for OneOrMany<T> {
    fn name() -> Cow<'static, str> {
        format!("{}s", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.extend([(T::name().into_owned(), T::schema()), (Text::name().into_owned(), Text::schema())]);
        T::schemas(schemas);
    }
}

/// The result of an act for one row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowResult {
    key: String,
    outcome: RowOutcome,
    /// The row's status now.
    #[schema(required)]
    status: Option<String>,
}

/// What happened to the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RowOutcome {
    /// The act changed the row.
    Done,
    /// The same lease did it before.
    Already,
    /// Another worker holds the row now, or the lease has ended.
    Lost,
    /// There is no such row.
    Gone,
}

impl RowResult {
    /// The HTTP status of a response about this row alone.
    pub(crate) fn status(&self) -> StatusCode {
        match self.outcome {
            RowOutcome::Done | RowOutcome::Already => StatusCode::OK,
            RowOutcome::Lost => StatusCode::CONFLICT,
            RowOutcome::Gone => StatusCode::GONE,
        }
    }
}

impl From<Answer> for RowResult {
    fn from(answer: Answer) -> Self {
        let outcome = match answer.outcome {
            Outcome::Done => RowOutcome::Done,
            Outcome::Already => RowOutcome::Already,
            Outcome::Lost => RowOutcome::Lost,
            Outcome::Gone => RowOutcome::Gone,
        };
        Self { key: answer.key, outcome, status: answer.status }
    }
}

impl IntoResponse for RowResult {
    fn into_response(self) -> Response {
        (self.status(), Json(self)).into_response()
    }
}

/// The results of an act, one for each row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowResults {
    items: Vec<RowResult>,
}

impl From<Vec<Answer>> for RowResults {
    fn from(answers: Vec<Answer>) -> Self {
        Self { items: answers.into_iter().map(RowResult::from).collect() }
    }
}

impl IntoResponse for RowResults {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

/// The result of a request for one row, or the list for a request for many.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OneOrManyResults {
    One(RowResult),
    Many(RowResults),
}

impl OneOrManyResults {
    pub(crate) fn new(single: bool, mut answers: Vec<Answer>) -> Self {
        match answers.pop() {
            Some(one) if single && answers.is_empty() => Self::One(one.into()),
            last => {
                answers.extend(last);
                Self::Many(answers.into())
            }
        }
    }
}

impl IntoResponse for OneOrManyResults {
    fn into_response(self) -> Response {
        match self {
            Self::One(one) => one.into_response(),
            Self::Many(many) => many.into_response(),
        }
    }
}

/// The responses 409 and 410 of acts on one held row, with the result `T`.
pub(crate) struct Lost<T>(PhantomData<T>);

impl<T: ToSchema> IntoResponses for Lost<T> {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let response = |description: &str, schema: RefOr<Schema>| {
            RefOr::T(ResponseBuilder::new().description(description).content("application/json", Content::new(Some(schema))).build())
        };
        let row = || Ref::from_schema_name(T::name());
        let lost = Schema::OneOf(OneOfBuilder::new().item(row()).item(Ref::from_schema_name(WireError::name())).build());
        BTreeMap::from([
            ("409".to_owned(), response("Another worker holds the row, or the lease has ended: drop the result.", lost.into())),
            ("410".to_owned(), response("There is no such row any more.", row().into())),
        ])
    }
}
