//! The project's secret, with which its tokens are signed.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner::Pool;
use gleaner_ingest::sealing::{Error, keyfile};
use jsonwebtoken::{DecodingKey, EncodingKey};
use rand::RngCore as _;
use zeroize::Zeroizing;

use crate::auth::ApiKeys;

/// Where the secret is looked for before the file.
const VARIABLE: &str = "JWT_SECRET";
/// The file in the home directory, made at first use.
const FILE: &str = "jwt.secret";
/// What a shorter one could be guessed from: HS256 wants as many bytes as its hash has.
const SHORTEST: usize = 32;

/// Signs and verifies the tokens of one project, and knows its programs' keys where it was told the database. Cheap to clone,
/// never printed.
#[derive(Clone)]
pub struct Access {
    pub(super) keys: Arc<Keys>,
    /// None: opaque keys are nobody's.
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
    /// With the secret of this installation: the variable `JWT_SECRET`, else the file `jwt.secret` in its home, made
    /// with random bytes when it is not there yet. Several servers of one project share it.
    pub fn load(home: &Path) -> Result<Self, Error> {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => Self::new(&Zeroizing::new(text), VARIABLE),
            Err(std::env::VarError::NotUnicode(_)) => Err(Error::Keys { place: VARIABLE.into(), detail: "not text".into() }),
            _ => {
                let path = home.join(FILE);
                let text = keyfile::read_or_make(&path, || {
                    let mut bytes = Zeroizing::new([0_u8; 48]);
                    rand::rng().fill_bytes(bytes.as_mut_slice());
                    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice()) + "\n")
                })?;
                Self::new(&text, &path.display().to_string())
            }
        }
    }

    /// With this secret, used as text, as Supabase does. `place` is where it was written, for the error.
    pub fn new(secret: &str, place: &str) -> Result<Self, Error> {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            let detail = format!("the secret has fewer than {SHORTEST} characters; `openssl rand -base64 48` makes one");
            return Err(Error::Keys { place: place.to_owned(), detail });
        }
        let (signing, verifying) = (EncodingKey::from_secret(secret.as_bytes()), DecodingKey::from_secret(secret.as_bytes()));
        Ok(Self { keys: Arc::new(Keys { signing, verifying }), programs: None })
    }

    /// Honours the opaque keys kept in this database too. All copies share what they remember of them.
    pub fn with_programs(mut self, pool: Pool) -> Self {
        self.programs.get_or_insert_with(|| Arc::new(ApiKeys::new(pool)));
        self
    }
}
