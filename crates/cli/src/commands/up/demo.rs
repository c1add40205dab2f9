//! `gleaner up --demo`: a fresh install that looks like one at work. Every message goes the way of a real one: signed as its provider
//! signs, through the webhook endpoint, to the agent.

mod script;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use gleaner_ingest::Message;
use gleaner_ingest::sealing::MasterKeys;
use gleaner_intake::channels::{Channels, NewChannel, Opened, nest};

use self::script::{CHANNELS, FILLED, MESSAGES, Said};
use crate::App;
use crate::output::{DIM, WARN, paint};

/// So many are sent at once, so that there is something to see.
const AT_ONCE: usize = 24;
/// Then one each so often, until the program ends or all have been sent so many times.
const PAUSE: Duration = Duration::from_secs(4);
const ROUNDS: usize = 25;

/// The demo's channels, ready to be sent to.
pub(super) struct Demo {
    channels: Channels,
    opened: Vec<Opened>,
    base: String,
}

/// Adds channels, contacts and a past to a fresh install. One that was filled before is used as it is.
pub(super) async fn prepare(home: &Path, database: &str, base: &str) -> Result<Demo> {
    let pool = gleaner::pool(database, 2)?;
    let client = pool.get().await.context("connect to the database")?;
    let rows = client
        .query_typed(
            "select exists (select from public.ingestion_providers as p where p.name <> all (array(select jsonb_array_elements_text($1::text::jsonb)))),
                    exists (select from public.ingestion_providers) as filled",
            &[(&names(), tokio_postgres::types::Type::TEXT)],
        )
        .await
        .context("look whether the install is fresh")?;
    if rows[0].get(0) {
        bail!(
            "--demo is for a fresh install, and this one has channels of its own\n  GLEANER_HOME=DIR gleaner up --demo makes another one"
        );
    }
    let is_filled: bool = rows[0].get(1);
    let channels = Channels::new(pool.clone(), MasterKeys::load(home)?);
    let mut opened = Vec::new();
    for (name, provider, settings) in CHANNELS {
        let known = if is_filled { channels.get(name).await.ok() } else { None };
        opened.push(match known {
            Some(known) => known,
            None => {
                let settings = nest(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
                let new = NewChannel {
                    name: name.to_owned(),
                    provider_code: provider.to_owned(),
                    settings,
                    auto_create_contacts: provider == "telegram",
                    ..NewChannel::default()
                };
                channels.add(new).await.with_context(|| format!("add the channel {name}"))?
            }
        });
    }
    if !is_filled {
        client.batch_execute(FILLED).await.context("fill in contacts, documents, follow-ups and jobs")?;
    }
    Ok(Demo { channels, opened, base: base.to_owned() })
}

fn names() -> String {
    serde_json::to_string(&CHANNELS.map(|(name, ..)| name)).expect("names")
}

/// Sends the messages. Never returns: the rest goes on without it.
pub(super) async fn run(app: &App, demo: Option<Demo>) {
    if let Some(demo) = demo {
        app.out.note(paint(DIM, "Sending sample messages to the webhook endpoint. Open the web address above and sign in."));
        if let Err(error) = demo.send_all().await {
            app.out.note(format!("{} {error:#}", paint(WARN, "The demo ended:")));
        }
    }
    std::future::pending().await
}

impl Demo {
    async fn send_all(&self) -> Result<()> {
        for (n, said) in MESSAGES.iter().cycle().take(MESSAGES.len() * ROUNDS).enumerate() {
            self.send(n, said).await?;
            if n >= AT_ONCE {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    async fn send(&self, n: usize, said: &Said) -> Result<()> {
        let (channel, name, email, phone, subject, text) = *said;
        let Some(opened) = self.opened.iter().find(|one| one.channel.name == channel) else { bail!("the channel {channel} is gone") };
        let id = (n + 1).to_string();
        let message = Message {
            name: Some(name),
            email: Some(email),
            phone: Some(phone),
            subject: Some(subject).filter(|subject| !subject.is_empty()),
            text: Some(text),
            id: Some(&id),
        };
        // One in a dozen has a wrong signature, as on every public address.
        self.channels.demonstrate(opened, &self.base, &message, n % 12 == 11).await?;
        Ok(())
    }
}
