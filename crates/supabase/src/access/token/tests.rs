use super::*;

const SECRET: &str = "a secret of at least thirty-two characters";

fn access() -> Access {
    Access::new(SECRET, "test").unwrap()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn verdict(claims: Value) -> Result<Role, (String, String)> {
    match access().verify(&access().sign(claims.as_object().unwrap())) {
        Ok(Caller::Token { role, .. }) => Ok(role),
        Ok(Caller::Ourselves) => panic!("a token is never us"),
        Err(refused) => Err((refused.code.into_owned(), refused.message)),
    }
}

#[test]
fn project_keys_hold_their_role_and_stay_the_same() {
    for role in [Role::Anon, Role::Service] {
        let key = access().project_key(role);
        assert_eq!(key, access().project_key(role));
        assert!(matches!(access().verify(&key), Ok(Caller::Token { role: held, .. }) if held == role));
    }
}

#[test]
fn a_token_is_good_for_its_time_only() {
    assert_eq!(verdict(json!({"role": "authenticated", "exp": now() + 60})), Ok(Role::Authenticated));
    assert_eq!(verdict(json!({"role": "authenticated", "exp": now() - 10})), Ok(Role::Authenticated), "clocks differ");
    for (claims, message) in [
        (json!({"role": "anon", "exp": now() - 60}), "JWT expired"),
        (json!({"role": "anon", "nbf": now() + 60}), "JWT not yet valid"),
        (json!({"role": "anon", "iat": now() + 60}), "JWT issued at future"),
        (json!({"role": "anon", "exp": "soon"}), "Parsing claims failed"),
        (json!({"role": 7}), "Parsing claims failed"),
    ] {
        assert_eq!(verdict(claims.clone()), Err(("PGRST303".into(), message.into())), "{claims}");
    }
}

#[test]
fn only_the_roles_of_the_project_are_taken_on() {
    assert_eq!(verdict(json!({})), Ok(Role::Anon));
    for role in ["postgres", "gleaner_engine", "", "service_role; reset role"] {
        assert!(verdict(json!({"role": role})).is_err(), "{role}");
    }
}

#[test]
fn a_token_signed_otherwise_is_refused() {
    let claims = json!({"role": "service_role"});
    let other = Access::new("another secret of at least thirty-two chars", "test").unwrap();
    let mut tokens = vec![other.sign(claims.as_object().unwrap()), String::new(), "a.b.c".into(), "x".repeat(100_000)];
    // The same secret with another algorithm, and with none at all.
    let signing = jsonwebtoken::EncodingKey::from_secret(SECRET.as_bytes());
    tokens.push(encode(&Header::new(Algorithm::HS512), &claims, &signing).unwrap());
    tokens.push("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.".into());
    for token in tokens {
        assert_eq!(access().verify(&token).unwrap_err().code, "PGRST301", "{}", &token[..token.len().min(60)]);
    }
}

#[test]
fn a_short_secret_is_refused() {
    assert!(Access::new("short", "JWT_SECRET").unwrap_err().to_string().contains("JWT_SECRET"));
}
