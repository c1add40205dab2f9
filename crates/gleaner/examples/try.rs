#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    match gleaner::migrate::migrate(&url, &|s| println!("{s}")).await {
        Ok(done) => println!("{} steps", done.len()),
        Err(e) => { println!("{e}"); std::process::exit(1) }
    }
}
