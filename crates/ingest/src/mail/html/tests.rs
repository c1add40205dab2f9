use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

#[test]
fn a_page_reads_as_a_person_would_read_it() {
    let page = "<!DOCTYPE html><html><head><title>T</title><style>p > a{}</style></head>\n<body><!-- <p>no</p> -->\
            <script>if (a < b) x('</p>')</script><h1>Hello</h1><p>Dear&nbsp;J&ouml;rg,<br>it&#146;s <b>b</b>old &amp; 1 < 2 &madeup; &#x1F600;</p>\
            <ul><li>one<li>two</ul><table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table><pre>x  y\n  z</pre>bye</body></html>";
    assert_eq!(html_to_text(page), "Hello\n\nDear Jörg,\nit’s bold & 1 < 2 &madeup; 😀\n\n- one\n- two\n\na b\nc\n\nx  y\n  z\n\nbye");
}

#[test]
fn tags_end_where_a_browser_ends_them() {
    assert_eq!(html_to_text("<a title=\"x > y\" href='>'>in</a>"), "in");
    assert_eq!(html_to_text("<p don't>in</p> it's"), "in\n\nit's");
    assert_eq!(html_to_text("a<br/>b<BR>c"), "a\nb\nc");
    assert_eq!(html_to_text("a <- b, c<3 </3"), "a <- b, c<3 </3");
    assert_eq!(html_to_text("<SCRIPT>x</Script >y"), "y");
    assert_eq!(html_to_text("x<script>never closed"), "x");
    assert_eq!(html_to_text("x<!-- never closed"), "x");
    assert_eq!(html_to_text("x<!--[if mso]>no<![endif]--><![if !mso]>yes<![endif]>"), "xyes");
    assert_eq!(html_to_text("x<p"), "x");
}

#[test]
fn hostile_markup_costs_what_its_length_costs() {
    let began = Instant::now();
    for piece in ["<div>", "<ul><li>", "<table><tr><td>", "<blockquote>", "<", "&", "</", "<!--", "<script>", "</script", "<a b=\"", "&#"] {
        html_to_text(&piece.repeat(200_000));
    }
    // Takes a second or two unoptimised; a quadratic algorithm would take hours.
    assert!(began.elapsed() < Duration::from_secs(60));
}

proptest! {
    #[test]
    fn no_markup_upsets_it(html in "(<|>|/|!|--|&|;|#|\"|'|=|script|style|pre|li|é| |\\PC){0,60}") {
        html_to_text(&html);
    }

    #[test]
    fn text_without_markup_keeps_its_words(words in proptest::collection::vec("[a-zé]{1,8}", 0..20)) {
        prop_assert_eq!(html_to_text(&words.join(" \n ")), words.join(" "));
    }
}
