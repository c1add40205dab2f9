//! Sends links by mail, where the operator configured a mail server.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

/// A mail to one person.
#[derive(Debug, Clone)]
pub(super) enum Letter {
    Invite(String),
    Recovery(String),
    Signup(String),
    /// A code, and a link where there is a page that takes it.
    Magic {
        code: String,
        link: Option<String>,
    },
    /// To a user who signed up a second time. Only the mail says so, because only the user can read it.
    KnownAlready,
}

impl Letter {
    fn subject(&self) -> &'static str {
        match self {
            Self::Invite(_) => "You are invited",
            Self::Recovery(_) => "Your new password",
            Self::Signup(_) => "Confirm your address",
            Self::Magic { .. } => "Your code for signing in",
            Self::KnownAlready => "You have an account already",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Invite(link) => format!("You are invited. Choose a password here:\r\n\r\n{link}\r\n"),
            Self::Recovery(link) => {
                format!(
                    "Choose a new password here:\r\n\r\n{link}\r\n\r\nIf you did not ask for it, nothing has changed and you need do nothing.\r\n"
                )
            }
            Self::Signup(link) => format!("Confirm your address here:\r\n\r\n{link}\r\n"),
            Self::Magic { code, link } => {
                let link = link.as_ref().map(|link| format!("\r\nOr follow this link:\r\n\r\n{link}\r\n")).unwrap_or_default();
                format!("Your code for signing in:\r\n\r\n{code}\r\n{link}\r\nIf you did not ask for it, you need do nothing.\r\n")
            }
            Self::KnownAlready => {
                "There was a sign-up with your address. You already have an account: sign in, or request a new password.\r\n".into()
            }
        }
    }
}

/// Sends mails through one SMTP server.
#[derive(Debug, Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Mailer {
    /// `url`: `smtps://user:password@host:465`, or `smtp://host:587?tls=required` for STARTTLS; plain `smtp://` sends unencrypted
    /// and is for a server on the same machine. `from`: `Gleaner <gleaner@example.com>`.
    pub fn new(url: &str, from: &str) -> Result<Self, String> {
        let from = from.parse().map_err(|error| format!("{from:?} is not a sender's address: {error}"))?;
        // The URL may contain a password, so the error does not repeat it.
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .map_err(|error| format!("the address of the mail server is not understood: {error}"))?;
        Ok(Self { transport: transport.timeout(Some(Duration::from_secs(30))).build(), from })
    }

    /// Sends in the background: the time that sending takes would reveal whether the address has an account.
    pub(super) fn send_soon(&self, to: &str, letter: Letter) {
        let (mailer, to) = (self.clone(), to.to_owned());
        tokio::spawn(async move {
            if let Err(error) = mailer.send(&to, &letter).await {
                tracing::warn!(%error, subject = letter.subject(), "auth: a mail was not sent");
            }
        });
    }

    async fn send(&self, to: &str, letter: &Letter) -> Result<(), String> {
        let message = Message::builder()
            .from(self.from.clone())
            .to(to.parse().map_err(|error| format!("the address cannot be written to: {error}"))?)
            .subject(letter.subject())
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text())
            .map_err(|error| error.to_string())?;
        self.transport.send(message).await.map(drop).map_err(|error| error.to_string())
    }
}
