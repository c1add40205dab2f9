use super::*;

#[test]
fn of_twilios_paths_only_media_of_the_account_are_fetched() {
    let good = |path: &str| is_twilio_media(path, "AC1");
    for path in
        ["Recordings/RE1", "Recordings/RE1.wav", "Calls/CA1/Recordings/RE1", "Conferences/CF1/Recordings/RE1", "Messages/MM1/Media/ME1"]
    {
        assert!(good(&format!("/2010-04-01/Accounts/AC1/{path}")), "{path}");
    }
    for path in [
        "/2010-04-01/Accounts/AC1.json",
        "/2010-04-01/Accounts/AC1",
        "/2010-04-01/Accounts/AC2/Recordings/RE1",
        "/2010-04-01/Accounts/AC1/Recordings.json",
        "/2010-04-01/Accounts/AC1/Recordings/RE1.json",
        "/2010-04-01/Accounts/AC1/Recordings/RE1/Transcriptions",
        "/2010-04-01/Accounts/AC1/Messages/MM1",
        "/2010-04-01/Accounts/AC1/Keys/RE1",
        "/2010-04-01/Accounts/AC1/Recordings/RE1%2F..",
        "/Recordings/RE1",
    ] {
        assert!(!good(path), "{path}");
    }
}
