//! The file store.

use anyhow::Result;
use bytes::Bytes;
use futures_util::stream;
use gleaner_intake::files::{Copied, Error, Files, Span};

use crate::world::{Home, eventually};

fn pieces(pieces: &[&'static str]) -> impl futures_util::Stream<Item = Result<Bytes, String>> {
    stream::iter(pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect::<Vec<_>>())
}

async fn read(files: &Files, path: &str) -> Result<Option<Bytes>> {
    Ok(match files.get(path).await? {
        Some(found) => Some(found.bytes().await?),
        None => None,
    })
}

/// The number of files in the store, including half-written ones.
fn contents(home: &Home) -> usize {
    fn count(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    }
    count(&home.0.join("files"))
}

#[tokio::test]
async fn what_is_put_is_got_whole_in_part_or_not_at_all() -> Result<()> {
    let home = Home::new()?;
    let files = Files::open(&home.0, None)?;
    files.put("a/b", "0123456789").await?;
    assert_eq!(read(&files, "a/b").await?.as_deref(), Some(&b"0123456789"[..]));
    let part = async |span| anyhow::Ok(files.get_span("a/b", Some(span)).await?.expect("there").bytes().await?);
    assert_eq!(part(Span::From { first: 2, last: Some(4) }).await?, "234");
    assert_eq!(part(Span::From { first: 7, last: Some(99) }).await?, "789");
    assert_eq!(part(Span::From { first: 7, last: None }).await?, "789");
    assert_eq!(part(Span::Last(3)).await?, "789");
    assert_eq!(part(Span::Last(99)).await?, "0123456789");
    assert!(matches!(files.get_span("a/b", Some(Span::From { first: 10, last: None })).await, Err(Error::Outside { size: 10 })));
    assert!(matches!(files.get_span("a/b", Some(Span::Last(0))).await, Err(Error::Outside { size: 10 })));
    files.put("a/b", "new").await?;
    assert_eq!(read(&files, "a/b").await?.as_deref(), Some(&b"new"[..]));
    files.delete("a/b").await?;
    files.delete("a/b").await?;
    assert_eq!(read(&files, "a/b").await?, None);
    assert!(files.get_span("a/b", Some(Span::Last(1))).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn no_path_leads_out_of_the_store() -> Result<()> {
    let home = Home::new()?;
    std::fs::write(home.0.join("secret"), "key")?;
    let files = Files::open(&home.0, None)?;
    for path in ["../secret", "a/../../secret", "/etc/passwd", "%2e%2e/secret", "..\\secret", ".", ""] {
        assert!(matches!(files.get(path).await, Err(Error::Path(_))), "{path} was read");
        assert!(matches!(files.put(path, "x").await, Err(Error::Path(_))), "{path} was written");
        assert!(matches!(files.delete(path).await, Err(Error::Path(_))), "{path} was deleted");
    }
    assert_eq!(std::fs::read_to_string(home.0.join("secret"))?, "key");
    Ok(())
}

#[tokio::test]
async fn a_stream_is_kept_as_a_whole_or_leaves_nothing() -> Result<()> {
    let home = Home::new()?;
    let files = Files::open(&home.0, None)?;
    assert_eq!(files.put_stream("s", pieces(&["abc", "def"]), 6).await?, 6);
    assert_eq!(read(&files, "s").await?.as_deref(), Some(&b"abcdef"[..]));
    assert!(matches!(files.put_stream("large", pieces(&["abc", "def"]), 5).await, Err(Error::TooLarge { limit: 5 })));
    let broken = stream::iter([Ok(Bytes::from_static(b"abc")), Err("cable cut".to_owned())]);
    assert!(matches!(files.put_stream("broken", broken, 100).await, Err(Error::Source(why)) if why == "cable cut"));
    assert_eq!(contents(&home), 1, "only the good one");
    Ok(())
}

#[tokio::test]
async fn a_copy_on_the_side_appears_only_when_it_is_whole() -> Result<()> {
    let home = Home::new()?;
    let files = Files::open(&home.0, None)?;
    let left = files.put_beside("left", 100)?;
    left.send(Copied::Piece(Bytes::from_static(b"half"))).await?;
    let whole = files.put_beside("whole", 100)?;
    whole.send(Copied::Piece(Bytes::from_static(b"all"))).await?;
    drop(left);
    whole.send(Copied::Whole).await?;
    eventually("the file to be there", async || Ok(read(&files, "whole").await?.is_some())).await?;
    eventually("the broken one to go", async || Ok(contents(&home) == 1)).await?;
    assert_eq!(read(&files, "left").await?, None);
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn the_folder_is_its_owners_alone() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new()?;
    let _files = Files::open(&home.0, None)?;
    assert_eq!(std::fs::metadata(home.0.join("files"))?.permissions().mode() & 0o777, 0o700);
    Ok(())
}

#[test]
fn an_invalid_file_store_is_reported_at_the_start() {
    let home = std::env::temp_dir();
    for url in ["files", "https://example.com/x", "s3://", "ftp://x"] {
        assert!(Files::open(&home, Some(url)).is_err_and(|error| error.to_string().contains("s3://bucket")), "{url}");
    }
}
