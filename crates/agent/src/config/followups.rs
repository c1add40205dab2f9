//! The sections `followup_polling` and `followups`.

use std::path::Path;

use gleaner_systems::followups::{OnUnknown, Polling, Settings, Ways};

use super::layers::Layers;
use super::read;

pub(super) fn read(layers: &mut Layers, home: &Path) -> Settings {
    let usual = Polling::default();
    let polling = Polling {
        poll_interval: layers.maybe("followup_polling.poll_interval_seconds", read::some_span).unwrap_or(usual.poll_interval),
        batch_size: layers.maybe("followup_polling.batch_size", read::number(1..=1000)).unwrap_or(usual.batch_size),
        preemptive_window: layers.maybe("followup_polling.preemptive_window_seconds", read::span).unwrap_or(usual.preemptive_window),
        execution_timeout: layers.maybe("followup_polling.execution_timeout_seconds", read::some_span).unwrap_or(usual.execution_timeout),
        max_retries: layers
            .maybe("followup_polling.max_retries", read::number(0..=MOST_RETRIES))
            .and_then(|most| i32::try_from(most).ok())
            .unwrap_or(usual.max_retries),
        retry_delay: layers.maybe("followup_polling.retry_delay_seconds", read::span).unwrap_or(usual.retry_delay),
    };
    let mut text = |key: &str| layers.maybe(key, read::text).filter(|text| !text.is_empty());
    let mut ways = Ways {
        http_url: text("followups.http_url"),
        http_token: text("followups.http_token"),
        http_allow: Vec::new(),
        smtp_url: text("followups.smtp_url"),
        mail_from: text("followups.mail_from"),
        telegram_url: text("followups.telegram_url"),
        telegram_token: text("followups.telegram_token"),
        twilio_url: text("followups.twilio_url"),
        twilio_account: text("followups.twilio_account"),
        twilio_token: text("followups.twilio_token"),
        twilio_from: text("followups.twilio_from"),
        twilio_whatsapp_from: text("followups.twilio_whatsapp_from"),
        status_callback: text("followups.status_callback"),
        command: text("followups.command"),
        folder: home.to_owned(),
        channels: None,
    };
    let (sink, model, template) = (text("followups.sink"), text("followups.model"), text("followups.template"));
    ways.http_allow = layers.maybe("followups.http_allow", read::list).unwrap_or_default();
    Settings {
        polling,
        ways,
        sink,
        model,
        template,
        dry_run: layers.maybe("followups.dry_run", read::yes).unwrap_or_default(),
        on_unknown: layers.maybe("followups.on_unknown", |text| OnUnknown::read(text).ok_or_else(|| "write ask or resend".to_owned())),
    }
}

/// The declaration ends an action after one failure more.
const MOST_RETRIES: usize = 19;
