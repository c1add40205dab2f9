//! All settings of an agent.

/// One setting: its key in `agent.toml`, the variables that set it, and its default.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: &'static str,
    /// Read in this order; the first one that is set counts.
    pub variables: &'static [&'static str],
    pub default: Option<&'static str>,
    /// For people: what applies when there is no default.
    pub otherwise: &'static str,
    pub secret: bool,
    pub about: &'static str,
}

const fn setting(key: &'static str, variables: &'static [&'static str], about: &'static str) -> Setting {
    Setting { key, variables, default: None, otherwise: "", secret: false, about }
}

impl Setting {
    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn otherwise(mut self, text: &'static str) -> Self {
        self.otherwise = text;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    pub fn find(key: &str) -> Option<&'static Self> {
        ALL.iter().find(|setting| setting.key == key)
    }
}

pub const ALL: &[Setting] = &[
    setting("name", &["GLEANER_AGENT_NAME"], "Distinguishes the agents of one machine").or("agent"),
    setting("worker", &["WORKER_ID"], "The agent id in the database").otherwise("a new one at each start"),
    setting("database_url", &["DATABASE_URL"], "The database, spoken to directly")
        .otherwise("the server, else what `gleaner up` runs")
        .secret(),
    setting("url", &["SUPABASE_URL"], "The server, Gleaner's own or a Supabase project").otherwise("that of the session"),
    setting("anon_key", &["SUPABASE_ANON_KEY"], "The server's public key").otherwise("none").secret(),
    setting(
        "service_key",
        &["GLEANER_KEY", "SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SERVICE_KEY"],
        "A worker's key, or one that may do everything; the latter is not for laptops",
    )
    .otherwise("the session of `gleaner agent login`")
    .secret(),
    setting("session", &["GLEANER_AGENT_SESSION"], "The file with the session of `gleaner agent login`")
        .otherwise("that of the server, in agent/sessions of the home"),
    setting("owner", &["GLEANER_AGENT_OWNER"], "Whose work comes first").otherwise("the signed-in user, else none"),
    setting("queues", &["GLEANER_AGENT_QUEUES"], "Only these of the pipelines' queues").otherwise("all of the pipelines'"),
    setting("kinds", &["GLEANER_AGENT_KINDS"], "Only these kinds").otherwise("all it can process"),
    setting("pipelines", &["GLEANER_AGENT_PIPELINES"], "The file that says what is done to an item").otherwise("built in, offline"),
    setting("recordings", &["GLEANER_AGENT_RECORDINGS"], "Without a server: beginnings of addresses from which recordings may be fetched")
        .otherwise("through the server only"),
    setting("concurrency", &["GLEANER_AGENT_CONCURRENCY"], "Items in work at once, in all queues together").or("4"),
    setting("prefetch", &["GLEANER_AGENT_PREFETCH"], "Items taken beyond those in work").or("0"),
    setting("grace", &["GLEANER_AGENT_GRACE"], "How long running work may take to finish when asked to stop").or("30s"),
    setting("watch", &["GLEANER_AGENT_WATCH"], "How often running work is checked for having been cancelled").or("5s"),
    setting("wake", &["GLEANER_AGENT_WAKE"], "hybrid, poll-only or push-only").or("hybrid"),
    setting("poll.base", &["GLEANER_AGENT_POLL_BASE"], "The first wait between polls without push").or("5s"),
    setting("poll.max", &["GLEANER_AGENT_POLL_MAX"], "The longest wait without push").or("30s"),
    setting("poll.factor", &["GLEANER_AGENT_POLL_FACTOR"], "How much longer each empty poll makes the wait").or("1.5"),
    setting("poll.unnotified", &["GLEANER_AGENT_POLL_UNNOTIFIED"], "The longest wait while rows may arrive without a notification")
        .or("1s"),
    setting("poll.pushed_base", &["GLEANER_AGENT_POLL_PUSHED_BASE"], "The first wait while push works").or("30s"),
    setting("poll.pushed_max", &["GLEANER_AGENT_POLL_PUSHED_MAX"], "The longest wait while push works").or("60s"),
    setting("poll.jitter", &["GLEANER_AGENT_POLL_JITTER"], "Share of a wait added at random, so that a fleet does not poll together")
        .or("0.1"),
    setting("poll.seed", &["GLEANER_AGENT_POLL_SEED"], "Makes the jitter repeatable, for tests").otherwise("random"),
    setting("followup_polling.poll_interval_seconds", &["FOLLOWUP_POLL_INTERVAL_SECONDS"], "How often to poll for follow-ups").or("30"),
    setting("followup_polling.batch_size", &["FOLLOWUP_BATCH_SIZE"], "Follow-ups claimed by one poll, and sent at once").or("10"),
    setting(
        "followup_polling.preemptive_window_seconds",
        &["FOLLOWUP_PREEMPTIVE_WINDOW_SECONDS"],
        "How long before their time follow-ups are taken and composed; they are sent when it comes",
    )
    .or("5"),
    setting(
        "followup_polling.execution_timeout_seconds",
        &["FOLLOWUP_EXECUTION_TIMEOUT_SECONDS"],
        "How long composing, and how long sending a follow-up may take",
    )
    .or("300"),
    setting("followup_polling.max_retries", &["FOLLOWUP_MAX_RETRIES"], "How often a failed follow-up is tried again").or("3"),
    setting("followup_polling.retry_delay_seconds", &["FOLLOWUP_RETRY_DELAY_SECONDS"], "How long to wait before that").or("60"),
    setting(
        "followups.sink",
        &["FOLLOWUP_SINK"],
        "How follow-ups are sent that do not say it: http, email, telegram, sms, whatsapp, command, origin",
    )
    .otherwise("the channel that the contact wrote through, else the first that fits"),
    setting("followups.dry_run", &["FOLLOWUP_DRY_RUN"], "Do everything but send").or("false"),
    setting(
        "followups.on_unknown",
        &["FOLLOWUP_ON_UNKNOWN"],
        "When it is unknown whether one was sent: ask a person, or resend it with the same key",
    )
    .otherwise("resend where the other side knows keys, else ask"),
    setting("followups.model", &["FOLLOWUP_MODEL"], "The model of the pipeline file that composes").otherwise("a template does"),
    setting("followups.template", &["FOLLOWUP_TEMPLATE"], "The template that composes without a model")
        .otherwise("a greeting and the intent"),
    setting("followups.http_url", &["FOLLOWUP_HTTP_URL"], "Where the sink http posts to").otherwise("none"),
    setting("followups.http_token", &["FOLLOWUP_HTTP_TOKEN"], "A bearer token for it").otherwise("none").secret(),
    setting("followups.http_allow", &["FOLLOWUP_HTTP_ALLOW"], "Beginnings of addresses that a follow-up may name itself").otherwise("none"),
    setting("followups.smtp_url", &["FOLLOWUP_SMTP_URL"], "The mail server: smtps://user:password@host").otherwise("none").secret(),
    setting("followups.mail_from", &["FOLLOWUP_MAIL_FROM"], "The address that mail is sent from").otherwise("none"),
    setting("followups.telegram_token", &["FOLLOWUP_TELEGRAM_TOKEN"], "The token of a Telegram bot").otherwise("none").secret(),
    setting("followups.telegram_url", &["FOLLOWUP_TELEGRAM_URL"], "Telegram's address").or("https://api.telegram.org"),
    setting("followups.twilio_account", &["FOLLOWUP_TWILIO_ACCOUNT"], "The SID of a Twilio account").otherwise("none"),
    setting("followups.twilio_token", &["FOLLOWUP_TWILIO_TOKEN"], "Its auth token").otherwise("none").secret(),
    setting("followups.twilio_from", &["FOLLOWUP_TWILIO_FROM"], "The number, or messaging service, that text messages are sent from")
        .otherwise("none"),
    setting("followups.twilio_whatsapp_from", &["FOLLOWUP_TWILIO_WHATSAPP_FROM"], "The number that WhatsApp messages are sent from")
        .otherwise("none"),
    setting("followups.twilio_url", &["FOLLOWUP_TWILIO_URL"], "Twilio's address").or("https://api.twilio.com"),
    setting(
        "followups.status_callback",
        &["FOLLOWUP_STATUS_CALLBACK"],
        "Where Twilio reports what becomes of a message: the webhook URL of a channel",
    )
    .otherwise("nowhere"),
    setting("followups.command", &["FOLLOWUP_COMMAND"], "The command that the sink command runs").otherwise("none"),
    setting("runs.slots", &["GLEANER_RUN_SLOTS"], "Runs replayed at once on this machine, each in a browser of its own; 0 takes none")
        .or("1"),
    setting("runs.labels", &["GLEANER_RUN_LABELS"], "Labels of this machine: it also takes runs that ask for one of these")
        .otherwise("none"),
    setting(
        "runs.per_site",
        &["GLEANER_RUN_PER_SITE"],
        "Runs at once on one site, by all agents together, where run_sites does not say it",
    )
    .or("2"),
    setting("runs.allow", &["GLEANER_RUN_ALLOW"], "Private networks that replayed pages may reach, such as 127.0.0.1 or 10.0.0.0/8")
        .otherwise("none"),
    setting("runs.chromium", &["GLEANER_RUN_CHROMIUM"], "The browser").otherwise("chromium on the PATH"),
    setting("runs.chromedriver", &["GLEANER_RUN_CHROMEDRIVER"], "Its driver").otherwise("chromedriver on the PATH"),
    setting("status", &["GLEANER_AGENT_STATUS"], "Where the status page listens, on loopback; off is none").or("127.0.0.1:7433"),
];
