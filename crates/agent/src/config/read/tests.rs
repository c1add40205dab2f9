use super::*;

#[test]
fn times_are_read_as_people_write_them() {
    let read: Vec<u128> = ["5s", "250ms", "2 min", "1.5h", "7", "0.5"].iter().map(|t| span(t).expect(t).as_millis()).collect();
    assert_eq!(read, [5000, 250, 120_000, 5_400_000, 7000, 500]);
    for wrong in ["", "s", "5 parsecs", "-1s", "1e400s", "NaN"] {
        assert!(span(wrong).is_err(), "{wrong}");
    }
    assert!(some_span("0s").is_err());
}

#[test]
fn the_page_is_only_for_this_machine() {
    assert!(listen("0.0.0.0:7433").is_err_and(|why| why.contains("loopback")));
    assert!(listen("[::1]:0").is_ok_and(|address| address.is_some()));
    assert_eq!(listen("off"), Ok(None));
}

#[test]
fn a_name_cannot_lead_out_of_the_folder_of_notes() {
    assert!(name("../up").is_err() && name("a/b").is_err() && name("").is_err() && name(".x").is_err());
    assert!(name("laptop-2").is_ok());
}
