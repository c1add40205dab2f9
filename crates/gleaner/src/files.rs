//! The SQL that ships inside the library, by path under `sql/`.

include!(concat!(env!("OUT_DIR"), "/sql_files.rs"));

/// Files directly in `folder` with this extension, in the order of their names.
pub(crate) fn within(folder: &str, extension: &str) -> Vec<(&'static str, &'static str)> {
    FILES
        .iter()
        .filter(|(name, _)| {
            name.strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| !rest.contains('/') && rest.strip_suffix(extension).is_some_and(|s| s.ends_with('.')))
        })
        .copied()
        .collect()
}
