//! Lists every file under `sql/` for the migrator, so that adding a file is all it takes to ship it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_SCHEMA").is_none() {
        return;
    }
    let sql = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("sql");
    let sql = sql.canonicalize().expect("the sql folder lies beside build.rs");
    let mut files = Vec::new();
    collect(&sql, &mut files);
    files.sort();

    let mut out = String::from("pub(crate) static FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&sql).unwrap().to_str().unwrap().replace('\\', "/");
        writeln!(out, "    ({name:?}, include_str!({:?})),", file.to_str().unwrap()).unwrap();
    }
    out.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("sql_files.rs"), out).unwrap();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "sql" || e == "toml") && !path.ends_with("schema.sql") {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
}
