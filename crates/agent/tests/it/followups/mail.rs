//! A mail server of our own: takes mail, or refuses it as the test says.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub(super) struct MailServer {
    pub url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    got: Mutex<Vec<(String, String)>>,
    refusal: Mutex<Option<String>>,
}

impl MailServer {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("smtp://{}", listener.local_addr()?);
        let state = Arc::new(State::default());
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, shared.clone()));
            }
        });
        Ok(Self { url, state })
    }

    /// Answers recipients with this line.
    pub(super) fn refuse(&self, line: &str) {
        *self.state.refusal.lock().expect("not poisoned") = Some(line.to_owned());
    }

    /// Recipient and text of each mail.
    pub(super) fn got(&self) -> Vec<(String, String)> {
        self.state.got.lock().expect("not poisoned").clone()
    }
}

async fn talk(stream: TcpStream, state: Arc<State>) -> Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 test\r\n").await?;
    let mut to = String::new();
    while let Some(line) = lines.next_line().await? {
        let word = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match word.as_str() {
            "EHLO" => "250-test\r\n250 8BITMIME".to_owned(),
            "RCPT" => {
                to = line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                let refusal = state.refusal.lock().expect("not poisoned").clone();
                refusal.unwrap_or_else(|| "250 ok".to_owned())
            }
            "DATA" => {
                write.write_all(b"354 go on\r\n").await?;
                let mut text = String::new();
                while let Some(line) = lines.next_line().await? {
                    if line == "." {
                        break;
                    }
                    text.push_str(&line);
                    text.push('\n');
                }
                let mut got = state.got.lock().expect("not poisoned");
                got.push((to.clone(), text));
                format!("250 2.0.0 Ok: queued as pm-{}", got.len())
            }
            "QUIT" => "221 bye".to_owned(),
            _ => "250 ok".to_owned(),
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}
