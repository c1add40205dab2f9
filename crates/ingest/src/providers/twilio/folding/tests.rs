use super::*;

const WHOLE: &str =
    "AccountSid=AC1&ApiVersion=2010&Body=hi&From=%2B14155550111&FromCity=X&MessageSid=SM1&NumMedia=0&SmsSid=SM1&To=%2B14155550122";

fn verdict(body: &str) -> Result<(), Refusal> {
    refuse_folded(&Fields::form(body.as_bytes()), Webhook::Message)
}

#[test]
fn a_field_folded_into_another_is_found() {
    assert_eq!(verdict(WHOLE), Ok(()));
    for (whole, folded) in [
        ("Body=hi&From=", "Body=hiFrom"),
        ("%2B14155550111&FromCity=X", "%2B14155550111FromCityX"),
        ("Body=hi", "Bod=yhi"),
        ("Body=hi", "Bodyh=i"),
        ("NumMedia=0", "NumMedia0="),
        ("MessageSid=SM1&NumMedia=0", "MessageSid=SM1NumMedia0"),
        ("SmsSid=SM1&To=%2B14155550122", "SmsSid=SM1To%2B14155550122"),
    ] {
        assert!(WHOLE.contains(whole), "{whole}");
        assert!(verdict(&WHOLE.replace(whole, folded)).is_err(), "{folded}");
    }
}

#[test]
fn words_in_a_message_are_no_fields() {
    for body in ["From+me+To+you", "NumMedia+0+WaId", "SmsSid", "Forwarded", "Caller+Direction"] {
        assert_eq!(verdict(&WHOLE.replace("Body=hi", &format!("Body={body}"))), Ok(()), "{body}");
    }
    // Fields that are new, and known ones that are absent.
    assert_eq!(verdict(&WHOLE.replace("&NumMedia=0", "&NewField=1")), Ok(()));
    assert_eq!(verdict(&WHOLE.replace("&FromCity=X", "")), Ok(()));
}
