use super::*;

fn row(cells: &[Option<&str>]) -> Vec<u8> {
    let mut bytes = (cells.len() as u16).to_be_bytes().to_vec();
    for cell in cells {
        match cell {
            None => bytes.push(b'n'),
            Some(text) => {
                bytes.push(b't');
                bytes.extend((text.len() as u32).to_be_bytes());
                bytes.extend(text.as_bytes());
            }
        }
    }
    bytes
}

#[test]
fn an_update_may_bring_its_old_key() {
    let mut bytes = vec![b'U', 0, 0, 0, 7, b'K'];
    bytes.extend(row(&[Some("1"), None]));
    bytes.push(b'N');
    bytes.extend(row(&[Some("2"), Some("x")]));
    let message = decode(bytes.into()).expect("decodes");
    let text = |value: &str| Cell::Text(value.to_owned());
    assert_eq!(message, Message::Update { relation: 7, old: Some(vec![text("1"), Cell::Null]), new: vec![text("2"), text("x")] });
}

#[test]
fn a_message_cut_off_anywhere_is_an_error_and_no_panic() {
    let mut whole = vec![b'I', 0, 0, 0, 7, b'N'];
    whole.extend(row(&[Some("hello"), None]));
    for length in 0..whole.len() {
        assert!(decode(whole[..length].to_vec().into()).is_err(), "{length}");
    }
    assert!(decode(whole.into()).is_ok());
}
