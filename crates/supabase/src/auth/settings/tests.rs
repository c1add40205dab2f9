use super::*;

fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
    Settings::from_variables("http://x/", |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn signing_up_is_off_and_links_stay_here_by_default() {
    let settings = read(&[]).unwrap();
    assert_eq!((settings.signup, settings.redirects.len(), settings.base.as_str()), (Signup::Off, 0, "http://x"));
    let settings = read(&[("GLEANER_SIGNUP", "open"), ("GLEANER_REDIRECTS", "https://a.example, http://localhost:5173")]).unwrap();
    assert_eq!((settings.signup, settings.redirects), (Signup::Open, vec!["https://a.example".into(), "http://localhost:5173".into()]));
}

#[test]
fn a_setting_that_cannot_be_meant_is_reported() {
    for wrong in [
        &[("GLEANER_SIGNUP", "yes")][..],
        &[("GLEANER_SIGNUP", "confirmed")],
        &[("GLEANER_REDIRECTS", "https://")],
        &[("GLEANER_REDIRECTS", "app.example.com")],
        &[("GLEANER_PASSWORD_MIN", "3")],
        &[("GLEANER_PASSWORD_REFUSED", "/nonexistent/list")],
        &[("GLEANER_PASSWORD_FRESH", "soon")],
        &[("SMTP_URL", "smtp://localhost")],
        &[("SMTP_URL", "localhost"), ("SMTP_FROM", "a@example.com")],
        &[("SMTP_URL", "smtp://localhost"), ("SMTP_FROM", "nobody")],
    ] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
}
