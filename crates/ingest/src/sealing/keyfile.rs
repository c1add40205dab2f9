//! A file with a secret: readable by its owner only, and created completely or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use zeroize::Zeroizing;

use super::Error;

/// The text in the file. The first caller creates it; concurrent callers get the same text.
pub fn read_or_make(path: &Path, make: impl FnOnce() -> Zeroizing<String>) -> Result<Zeroizing<String>, Error> {
    let failed = |error: io::Error| Error::Keys { place: path.display().to_string(), detail: error.to_string() };
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_file(path, &make()).map_err(failed)?,
        other => return other.map_err(failed),
    }
    read(path).map_err(failed)
}

fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        let message = format!("others may read it (mode {:03o}), so it is no secret: chmod 600 it", mode & 0o777);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    fs::read_to_string(path).map(Zeroizing::new)
}

/// Written to a temporary file and linked into place: a link, unlike a rename, does not replace what another process has just
/// created.
fn make_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("new-{}-{:x}", std::process::id(), rand::random::<u64>()));
    let made = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        // If a power failure lost the key, the secrets sealed with it would be lost too.
        file.sync_all()?;
        match fs::hard_link(&beside, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all()),
        }
    })();
    let _ = fs::remove_file(&beside);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("gleaner-keyfile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn eight_at_once_agree_on_one_secret_and_others_cannot_read_it() {
        let path = folder("race").join("home").join("master.key");
        let read = |n: usize| read_or_make(&path, || Zeroizing::new(format!("secret {n}"))).unwrap();
        let texts: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || read(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_others_may_read_is_refused() {
        let path = folder("mode").join("master.key");
        read_or_make(&path, || Zeroizing::new("secret".into())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let message = read_or_make(&path, || unreachable!()).unwrap_err().to_string();
        assert!(message.contains("640") && message.contains("chmod 600"), "{message}");
    }
}
