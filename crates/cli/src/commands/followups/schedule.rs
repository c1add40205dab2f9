//! `gleaner followups schedule`.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio_postgres::types::Type;

use super::When;
use crate::App;
use crate::words::moment;

/// Schedule a message to a person.
///
/// A reply cancels it. It is composed when it is due: --text is sent as it is, --intent says what a model or the template should write.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner followups schedule ada@example.com --in 2h --text 'Did you get my offer?'
  gleaner followups schedule contact:42 --at '2026-12-01 09:00 Europe/Berlin' --intent 'ask whether the offer fits' --sink sms
  gleaner followups schedule 7836623698 --in 5min --intent 'say hello' --payload '{\"approval\": true}'")]
pub(crate) struct Args {
    /// Whom: an e-mail address, a number, contact:ID, or the id that another system has for them
    prospect: String,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    what: What,
}

/// What is sent, and how.
#[derive(Debug, clap::Args)]
pub(super) struct What {
    /// The text, sent as it is
    #[arg(long, required_unless_present_any = ["intent", "payload"])]
    text: Option<String>,
    /// What the message is for; the text is composed when it is due
    #[arg(long)]
    intent: Option<String>,
    /// How it is sent: http, email, telegram, sms, whatsapp, command, or origin, the channel they last wrote through
    #[arg(long)]
    sink: Option<String>,
    /// The kind of the action
    #[arg(long, default_value = "follow_up")]
    pub(super) kind: String,
    /// Further members of the payload, as a JSON object
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
}

impl What {
    pub(super) fn payload(&self) -> Result<Value> {
        let mut payload: Value = match &self.payload {
            Some(text) => serde_json::from_str(text).context("--payload is not JSON")?,
            None => json!({}),
        };
        if !payload.is_object() {
            bail!("--payload takes a JSON object");
        }
        for (name, value) in [("text", &self.text), ("follow_up_intent", &self.intent), ("sink", &self.sink)] {
            if let Some(value) = value {
                payload[name] = json!(value);
            }
        }
        Ok(payload)
    }
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let payload = args.what.payload()?;
    let client = app.target.client().await?;
    let (when, value) = args.when.sql(4)?;
    let sql = format!(
        "select to_jsonb(a), extract(epoch from a.scheduled_for - clock_timestamp())::float8
         from public.create_scheduled_action($1, $2, {when}, $3) as a"
    );
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] =
        [(&args.prospect, Type::TEXT), (&args.what.kind, Type::TEXT), (&payload, Type::JSONB), (&value, Type::TEXT)];
    let rows = client.query_typed(&sql, &params).await?;
    let row = rows.first().context("the action was not stored")?;
    let (action, due): (Value, f64) = (row.get(0), row.get(1));
    app.out.json(&action);
    let contact = action["contact_id"].as_i64().map_or_else(|| "not a contact".to_owned(), |id| format!("contact {id}"));
    app.out.line(format!("{} is due {}, for {} ({contact})", action["id"].as_str().unwrap_or_default(), moment(due), args.prospect));
    Ok(ExitCode::SUCCESS)
}
