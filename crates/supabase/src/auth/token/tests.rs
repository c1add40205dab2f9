use super::*;

fn signer(secret: &str) -> Signer {
    Signer::new(Access::new(&secret.repeat(4), "test").expect("long enough"), &Settings::new("http://localhost/"))
}

#[test]
fn a_refresh_token_cannot_be_made_from_what_the_database_keeps() {
    let ours = signer("our secret");
    let public = new_public_half();
    let token = ours.refresh_token(&public);
    assert_eq!(ours.read_refresh_token(&token), Some(public.as_str()));
    assert_eq!(signer("another one").read_refresh_token(&token), None);
    let other = ours.refresh_token(&new_public_half());
    let grafted = format!("{public}.{}", other.split_once('.').expect("two halves").1);
    for bad in [public.as_str(), "", ".", &grafted, &format!("{token}x"), &token[..token.len() - 1]] {
        assert_eq!(ours.read_refresh_token(bad), None, "{bad}");
    }
}

#[test]
fn a_renewed_token_is_another_string_within_the_second() {
    let session = json!({"session_id": Uuid::new_v4(), "user": {"id": Uuid::new_v4(), "role": "authenticated"}});
    let signer = signer("our secret");
    let (one, two) = (signer.sign(&session), signer.sign(&session));
    assert_ne!(one.token, two.token);
    assert_eq!(signer.verify(&one.token).map(|claims| claims.role), Ok(Role::Authenticated));
}
