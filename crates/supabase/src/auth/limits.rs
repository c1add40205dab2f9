//! Rate limits for sign-in.
//!
//! Attempts are counted by where they come from, never by the account they target: an attacker who guesses a user's password only
//! slows itself down, and that user's own sign-in from elsewhere is not affected. Buckets are per server and in memory: several
//! servers permit that many times as much, which is still far too little for guessing.
//!
//! `governor` decides; [`buckets`] keeps its state, because an attempt that was right is given back.

mod buckets;

use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use self::buckets::Buckets;

use super::error::{Failure, Result};

type Network = Option<IpAddr>;
type Account = [u8; 32];

#[derive(Debug)]
pub(super) struct Limits {
    /// Wrong passwords for one account from one network: ten, then two a minute.
    guesses: Buckets<(Network, Account)>,
    /// Refused requests from one network: sixty, then one a second.
    refusals: Buckets<Network>,
    /// Requests for links and accounts from one network: ten, then one a minute.
    requests: Buckets<Network>,
    /// Mails to one address: three, then one in ten minutes. The earlier mails stay valid meanwhile.
    mails: Buckets<Account>,
    /// Wrong codes for one address, from anywhere: ten, then two a minute. Unlike a password a code of six digits could be guessed
    /// from many networks together. Wrong codes delay those of the right person, whose link still works.
    codes: Buckets<Account>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            guesses: Buckets::new(10, Duration::from_secs(30)),
            refusals: Buckets::new(60, Duration::from_secs(1)),
            requests: Buckets::new(10, Duration::from_secs(60)),
            mails: Buckets::new(3, Duration::from_secs(600)),
            codes: Buckets::new(10, Duration::from_secs(30)),
        }
    }
}

/// An attempt that is counted before its result is known. Otherwise a thousand concurrent attempts would all count as the first.
#[derive(Debug)]
#[must_use]
pub(super) struct Try<'a> {
    limits: &'a Limits,
    network: Network,
    account: Option<Account>,
    /// It was a code.
    code: bool,
}

impl Limits {
    /// An attempt to sign in as `account` from `network`.
    pub(super) fn try_password(&self, network: Network, email: &str) -> Result<Try<'_>> {
        let account = account(email);
        self.guesses.take((network, account)).map_err(Failure::too_many)?;
        if let Err(wait) = self.refusals.take(network) {
            self.guesses.give_back((network, account));
            return Err(Failure::too_many(wait));
        }
        Ok(Try { limits: self, network, account: Some(account), code: false })
    }

    /// An attempt with a token that cannot be guessed. The limit only protects the database from load.
    pub(super) fn try_token(&self, network: Network) -> Result<Try<'_>> {
        self.refusals.take(network).map_err(Failure::too_many)?;
        Ok(Try { limits: self, network, account: None, code: false })
    }

    /// An attempt with a code for an address.
    pub(super) fn try_code(&self, network: Network, email: &str) -> Result<Try<'_>> {
        let account = account(email);
        self.codes.take(account).map_err(Failure::too_many)?;
        match self.try_password(network, email) {
            Ok(attempt) => Ok(Try { code: true, ..attempt }),
            Err(failure) => {
                self.codes.give_back(account);
                Err(failure)
            }
        }
    }

    /// A request for an account or a link.
    pub(super) fn request(&self, network: Network) -> Result<()> {
        self.requests.take(network).map_err(Failure::too_many)
    }

    /// A mail about to be sent to an address, whether or not it has an account.
    pub(super) fn mail(&self, email: &str) -> Result<()> {
        let over = |wait| Failure::too_many(wait).renamed("over_email_send_rate_limit", "email rate limit exceeded");
        self.mails.take(account(email)).map_err(over)
    }
}

impl Try<'_> {
    /// The attempt was right, or was not checked at all.
    pub(super) fn does_not_count(self) {
        self.limits.refusals.give_back(self.network);
        if let Some(account) = self.account {
            self.limits.guesses.give_back((self.network, account));
            if self.code {
                self.limits.codes.give_back(account);
            }
        }
    }
}

/// A fixed-size key, however long the address that was sent.
fn account(email: &str) -> Account {
    Sha256::digest(email).into()
}

#[cfg(test)]
mod tests;
