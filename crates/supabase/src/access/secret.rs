//! The project's secret, with which its tokens are signed.

use std::fmt;
use std::sync::Arc;

use gleaner_http::database::Pool;
use jsonwebtoken::{DecodingKey, EncodingKey};

use super::ApiKeys;

/// A shorter secret could be guessed: HS256 needs as many bytes as its hash has.
const SHORTEST: usize = 32;

/// The secret could be guessed.
#[derive(Debug, thiserror::Error)]
#[error("{place}: the secret has fewer than {SHORTEST} characters; `openssl rand -base64 48` makes one")]
pub struct WeakSecret {
    place: String,
}

/// Signs and verifies the tokens of one project, and verifies the keys of programs if it was given the database. Cheap to clone,
/// never printed.
#[derive(Clone)]
pub struct Access {
    pub(super) keys: Arc<Keys>,
    /// `None`: every opaque key is refused.
    pub(super) programs: Option<Arc<ApiKeys>>,
}

pub(super) struct Keys {
    pub signing: EncodingKey,
    pub verifying: DecodingKey,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

impl Access {
    /// Uses this secret as text, as Supabase does. `place` is where it was configured, for the error.
    pub fn new(secret: &str, place: &str) -> Result<Self, WeakSecret> {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return Err(WeakSecret { place: place.to_owned() });
        }
        let (signing, verifying) = (EncodingKey::from_secret(secret.as_bytes()), DecodingKey::from_secret(secret.as_bytes()));
        Ok(Self { keys: Arc::new(Keys { signing, verifying }), programs: None })
    }

    /// Also accepts the opaque keys kept in this database. All copies share one cache of them.
    pub fn with_programs(mut self, pool: Pool) -> Self {
        self.programs.get_or_insert_with(|| Arc::new(ApiKeys::new(pool)));
        self
    }
}
