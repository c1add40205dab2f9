//! The project's secret, from the environment or the home directory.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gleaner_ingest::sealing::{Error, keyfile};
use gleaner_supabase::access::{Access, WeakSecret};
use rand::RngCore as _;
use zeroize::Zeroizing;

/// The environment variable that is read before the file.
const VARIABLE: &str = "JWT_SECRET";
/// The file in the home directory, created at first use.
const FILE: &str = "jwt.secret";

/// Why the secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(transparent)]
    Weak(#[from] WeakSecret),
    #[error(transparent)]
    Unreadable(#[from] Error),
}

/// Access with the secret of this installation: the variable `JWT_SECRET`, else the file `jwt.secret` in its home
/// directory. The file is created with random bytes when it does not exist. Several servers of one project share the
/// secret.
pub fn load_access(home: &Path) -> Result<Access, SecretError> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => Ok(Access::new(&Zeroizing::new(text), VARIABLE)?),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::Keys { place: VARIABLE.into(), detail: "not text".into() }.into()),
        _ => {
            let path = home.join(FILE);
            let text = keyfile::read_or_make(&path, || {
                let mut bytes = Zeroizing::new([0_u8; 48]);
                rand::rng().fill_bytes(bytes.as_mut_slice());
                Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes.as_slice()) + "\n")
            })?;
            Ok(Access::new(&text, &path.display().to_string())?)
        }
    }
}
