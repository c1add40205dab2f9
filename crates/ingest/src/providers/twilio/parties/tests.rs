use super::*;

fn address(text: &str) -> Option<Address> {
    Party::known(Some(text))?.address("US")
}

#[test]
fn only_phone_numbers_are_phone_numbers() {
    assert_eq!(address("+14155550111"), Some(Address::Phone("+14155550111".into())));
    assert_eq!(address("whatsapp:+14155550111"), Some(Address::Phone("+14155550111".into())));
    assert_eq!(address("rcs:+14155550111"), Some(Address::Phone("+14155550111".into())));
    assert_eq!(address("whatsapp:US.13491208655302741918"), Some(Address::Other("whatsapp:US.13491208655302741918".into())));
    assert_eq!(address("messenger:14155550111"), Some(Address::Other("messenger:14155550111".into())));
    assert_eq!(address("client:4155550111"), Some(Address::Other("client:4155550111".into())));
    assert_eq!(address("sip:joe@example.com"), Some(Address::Other("sip:joe@example.com".into())));
    assert_eq!(address(""), None);
}

#[test]
fn withheld_callers_match_no_contact() {
    for sentinel in ["+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253", "anonymous", "Restricted", "unavailable"] {
        assert_eq!(address(sentinel), None, "{sentinel}");
        let parties = Parties::new(Some(sentinel), Some("+14155550122"));
        assert!(parties.is_withheld && parties.from.is_none());
    }
}
