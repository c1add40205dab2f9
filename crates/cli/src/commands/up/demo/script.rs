//! What the demo says.

type Listed = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Name, provider and settings. The secrets are no secrets: this install listens on this machine.
pub(super) const CHANNELS: [Listed; 7] = [
    ("Support line", "twilio", &[("auth_token", "demo-twilio-token")]),
    ("Mail", "postmark", &[("basic_auth.username", "demo"), ("basic_auth.password", "demo-postmark-password")]),
    ("Newsletter replies", "sendgrid", &[("basic_auth.username", "demo"), ("basic_auth.password", "demo-sendgrid-password")]),
    ("Sales inbox", "mailgun", &[("signing_key", "demo-mailgun-key")]),
    ("WhatsApp", "whatsapp", &[("app_secret", "demo-whatsapp-secret"), ("verify_token", "demo")]),
    ("Telegram", "telegram", &[("secret_token", "demo-telegram-token")]),
    ("Website form", "generic", &[("scheme", "hub-sha256"), ("secret", "demo-form-secret")]),
];

/// Channel, name, address, number, subject, text.
pub(super) type Said = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
pub(super) const MESSAGES: [Said; 16] = [
    ("Support line", "Grace Hopper", "grace@example.com", "+14155550101", "", "The export fails again with error 42. Please call me back tomorrow at 3 pm."),
    ("Mail", "Ann Lee", "ann@example.com", "+14155550102", "Offer for 40 seats", "Hello, we are 40 people in Hamburg. Could you send an offer by Friday? The budget is 12,000 EUR. Best, Ann"),
    ("WhatsApp", "Carlos Diaz", "carlos@example.com", "+34611555010", "", "Hi! Is the delivery on 3 December still on? We need it before noon."),
    ("Website form", "Mei Tanaka", "mei@example.com", "+81355550103", "Trial", "We would like to try it for two weeks with 5 people. Please set it up for next Monday."),
    ("Telegram", "Ivan", "ivan@example.com", "+79165550104", "", "Where do I find the invoice of October?"),
    ("Sales inbox", "Bob Meyer", "bob@meyer.example", "+49305550105", "Re: contract", "The contract looks good. We sign on Thursday. Please prepare the kick-off meeting for next week."),
    ("Newsletter replies", "Eve Okafor", "eve@example.com", "+2348055550106", "Re: What is new in November", "Interesting. Does it also work with our own PostgreSQL? Please send details to eve@example.com."),
    ("Support line", "Unknown", "unknown@example.com", "+14155550199", "", "Is this the number for repairs?"),
    ("Mail", "Grace Hopper", "grace@example.com", "+14155550101", "Error 42", "It happens only with files above 2 GB. I attached nothing, the log says: out of memory."),
    ("WhatsApp", "Ann Lee", "ann@example.com", "+14155550102", "", "Thanks, the offer arrived. One question: is support included?"),
    ("Website form", "Sam Rivera", "sam@example.com", "+14155550107", "Call me", "Please call me on Tuesday at 10 am about the renewal. It is worth 8,000 USD a year."),
    ("Mail", "Noor Haddad", "noor@example.com", "+31205550108", "Cancel", "We want to cancel our plan at the end of the month. Please confirm."),
    ("Sales inbox", "Ann Lee", "ann@example.com", "+14155550102", "Re: Offer for 40 seats", "We accept. Send the invoice to accounting@example.com, please."),
    ("Telegram", "Mei", "mei@example.com", "+81355550103", "", "The trial works well. Can two more people join?"),
    ("Support line", "Carlos Diaz", "carlos@example.com", "+34611555010", "", "The driver stands before a locked gate. Please call him at once."),
    ("Mail", "Bob Meyer", "bob@meyer.example", "+49305550105", "Kick-off", "Wednesday 2 pm suits us. Four people will join from our side."),
];

/// What was there before: contacts, documents, planned messages, and jobs that went well and badly.
pub(super) const FILLED: &str = include_str!("filled.sql");
