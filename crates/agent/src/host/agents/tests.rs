use super::*;

fn place(tables: &[&str], filters: &[(&str, &str)]) -> Place {
    let owned = |text: &&str| (*text).to_owned();
    Place {
        app_name: "crm".into(),
        url: "https://a.supabase.co".into(),
        anon_key: "k".into(),
        tables: tables.iter().map(owned).collect(),
        filters: filters.iter().map(|(table, filter)| (owned(table), owned(filter))).collect(),
    }
}

#[test]
fn only_what_the_person_agreed_to_is_served() {
    let wanted = |tables: &[&str], filters: &[(&str, &str)]| wanted(&place(tables, filters)).map_err(|trouble| trouble.to_string());
    assert_eq!(wanted(&["activities"], &[("activities", "processing_status=eq.raw")]), Ok((vec!["activities".into()], None)));
    assert_eq!(wanted(&["public.activities", "agent_processing_queue"], &[]), Ok((vec!["activities".into(), "dumps".into()], None)));
    let kinds = Some(vec!["call".to_owned(), "sms".to_owned()]);
    assert_eq!(wanted(&["activities"], &[("activities", "type=in.(call,sms)")]), Ok((vec!["activities".into()], kinds)));
    assert!(wanted(&["deals"], &[]).is_err_and(|why| why.contains("deals")));
    assert!(wanted(&["activities"], &[("activities", "sales_id=eq.7")]).is_err_and(|why| why.contains("sales_id=eq.7")));
    let both = [("activities", "type=eq.call")];
    assert!(wanted(&["activities", "execution_jobs"], &both).is_err(), "kinds are for all queues of an agent");
}
