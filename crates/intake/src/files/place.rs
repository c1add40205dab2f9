//! Paths of files, and URLs of stores.

use std::path::Path as Folder;

use object_store::path::Path;

use super::{Error, Result};

/// A path in the store. Only paths that we make ourselves are accepted: letters, digits, `-`, `_` and dots inside a name.
/// So no spelling of the parent folder can exist in any store, however it treats percent signs and backslashes.
pub(super) fn path(path: &str) -> Result<Path> {
    let good = |name: &str| {
        !name.is_empty()
            && name.len() <= 200
            && !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let refused = || Error::Path(path.chars().take(80).collect());
    if path.len() > 900 || !path.split('/').all(good) {
        return Err(refused());
    }
    Path::parse(path).map_err(|_| refused())
}

/// Bucket and prefix of `s3://bucket/prefix`.
pub(super) fn bucket(url: &str) -> Result<(&str, Option<Path>)> {
    let wrong = || Error::Open("GLEANER_FILES_URL looks like s3://bucket or s3://bucket/folder".to_owned());
    let rest = url.strip_prefix("s3://").ok_or_else(wrong)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(wrong());
    }
    let prefix = prefix.trim_end_matches('/');
    let prefix = if prefix.is_empty() { None } else { Some(path(prefix).map_err(|_| wrong())?) };
    Ok((bucket, prefix))
}

/// Creates the folder with access for its owner only, because it contains private messages.
pub(super) fn make_private(folder: &Folder) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_leave_the_store() {
        let deep = "a/".repeat(500) + "a";
        for bad in ["", "/", "..", "a/../b", "/etc/passwd", "a//b", "a/", "./a", "a/.hidden", "a\\b", "a\0b", "%2e%2e/a", "a b", "é", &deep]
        {
            assert!(path(bad).is_err(), "{bad:?} was accepted");
        }
        assert_eq!(path("activities/0198-ab/3").unwrap().as_ref(), "activities/0198-ab/3");
        assert_eq!(path("raw/2026-11-16/a.json").unwrap().as_ref(), "raw/2026-11-16/a.json");
    }

    #[test]
    fn a_bucket_may_have_a_folder() {
        assert_eq!(bucket("s3://box").unwrap(), ("box", None));
        assert_eq!(bucket("s3://box/").unwrap(), ("box", None));
        assert_eq!(bucket("s3://box/team/one/").unwrap(), ("box", Some(Path::from("team/one"))));
        for bad in ["box", "https://box", "s3://", "s3:///x", "s3://box/../x"] {
            assert!(bucket(bad).is_err(), "{bad} was accepted");
        }
    }
}
