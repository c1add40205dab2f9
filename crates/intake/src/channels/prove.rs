//! Whether the program at an address is a server of this installation. A channel's key is sent to no other.
//!
//! The question is a random challenge. A server answers with the challenge, sealed by the master key, which no other program has.

use std::time::Duration;

use gleaner_ingest::sealing::{MasterKeys, Place};
use uuid::Uuid;

use super::Channels;
use super::url::WEBHOOK_PATH;

/// The header of the question, and of the answer to it.
pub const CHALLENGE: &str = "x-gleaner-challenge";
pub const PROOF: &str = "x-gleaner-proof";

/// A question costs the server one encryption, of no more than this.
const LONGEST: usize = 64;

/// How long a program may take to answer. A sender would wait longer, but a person waits for this.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is found at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A server that has our master key.
    Ours,
    /// Another program, or a server of another installation.
    Another,
    /// Nothing answers, and why.
    None(String),
}

/// Values sealed for this place open nowhere else, so that the answers are of no use to anyone.
fn place(challenge: &str) -> Place<'_> {
    Place { table: "webhook endpoint", row: challenge, purpose: "proof" }
}

impl Channels {
    /// The server's answer to a challenge. `None` when it is none.
    pub fn prove(&self, challenge: &str) -> Option<String> {
        let valid = !challenge.is_empty() && challenge.len() <= LONGEST;
        valid.then(|| self.shared.keys.seal(b"", &place(challenge)))
    }

    /// Asks the program at this base URL. The question contains no secret.
    pub async fn find_program(&self, base: &str) -> Program {
        ask(&self.shared.keys, base).await
    }
}

async fn ask(keys: &MasterKeys, base: &str) -> Program {
    let client = match super::test::client(PATIENCE) {
        Ok(client) => client,
        Err(error) => return Program::None(super::test::plain(&error)),
    };
    let challenge = Uuid::new_v4().to_string();
    let url = format!("{}{WEBHOOK_PATH}", base.trim_end_matches('/'));
    let answer = match client.get(url).header(CHALLENGE, &challenge).send().await {
        Ok(answer) => answer,
        Err(error) => return Program::None(super::test::plain(&error)),
    };
    let proof = answer.headers().get(PROOF).and_then(|proof| proof.to_str().ok());
    if proof.is_some_and(|proof| keys.open(proof, &place(&challenge)).is_ok()) { Program::Ours } else { Program::Another }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_for_one_challenge_and_one_installation() {
        let (ours, others) = (MasterKeys::generate(), MasterKeys::generate());
        let proof = ours.seal(b"", &place("a"));
        assert!(ours.open(&proof, &place("a")).is_ok());
        assert!(ours.open(&proof, &place("b")).is_err(), "recorded from another question");
        assert!(others.open(&proof, &place("a")).is_err());
    }
}
