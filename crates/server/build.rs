//! The web interface is embedded from `web/dist`. Its file names change with their content, so the whole folder is watched.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
