use super::*;
use proptest::prelude::*;

const SIZE: PtySize = PtySize { rows: 5, columns: 10 };

fn shown(said: &str) -> TerminalScreen {
    let mut screen = TerminalScreen::new(SIZE);
    screen.apply_bytes(said.as_bytes());
    screen
}

#[track_caller]
fn check(said: &str, rows: &[&str], (row, column): (u16, u16)) {
    let snapshot = shown(said).snapshot(0);
    let mut texts: Vec<&str> = snapshot.rows.iter().map(|row| row.text.as_str()).collect();
    while texts.last() == Some(&"") {
        texts.pop();
    }
    let cursor = (snapshot.cursor.row, snapshot.cursor.column);
    assert_eq!((texts.as_slice(), cursor), (rows, (row, column)), "{said:?}");
    // A sequence means the same wherever it is split.
    let mut in_bytes = TerminalScreen::new(SIZE);
    said.as_bytes().iter().for_each(|byte| in_bytes.apply_bytes(&[*byte]));
    assert_eq!(in_bytes.snapshot(0), snapshot, "{said:?}");
}

#[test]
fn text_goes_on_in_the_next_row_and_scrolls_at_the_bottom() {
    check("hello", &["hello"], (0, 5));
    check("a\nb\r\nc", &["a", " b", "c"], (2, 1));
    check("0123456789", &["0123456789"], (0, 9));
    check("0123456789x", &["0123456789", "x"], (1, 1));
    check("1\r\n2\r\n3\r\n4\r\n5\r\n6", &["2", "3", "4", "5", "6"], (4, 1));
    check("ab\rc", &["cb"], (0, 1));
    check("ab\x08c", &["ac"], (0, 2));
    check("wide 漢字", &["wide 漢字"], (0, 9));
    check("12345678漢", &["12345678漢"], (0, 9));
    check("123456789漢", &["123456789", "漢"], (1, 2));
    check("e\u{301}x", &["e\u{301}x"], (0, 2));
}

#[test]
fn the_cursor_goes_where_it_is_told_and_no_further() {
    check("\x1b[3;4Hx", &["", "", "   x"], (2, 4));
    check("\x1b[99;99Hx", &["", "", "", "", "         x"], (4, 9));
    check("\x1b[Hx\x1b[2Cy\x1b[Bz", &["x  y", "    z"], (1, 5));
    check("abc\x1b[2Dx", &["axc"], (0, 2));
    check("\x1b[3;3H\x1b[99A\x1b[99Dx", &["x"], (0, 1));
    check("a\x1b[3Gb\x1b[2db", &["a b", "   b"], (1, 4));
    check("a\x1b[2ab\x1b[2ec", &["a  b", "", "    c"], (2, 5));
    check("\x1b[2;2H\x1b7\x1b[Hx\x1b8y", &["x", " y"], (1, 2));
    check("\x1b[2;2H\x1b[s\x1b[Hx\x1b[uy", &["x", " y"], (1, 2));
    check("ab\x1bDc\x1bEd", &["ab", "  c", "d"], (2, 1));
    check("a\r\nb\x1bMc", &["ac", "b"], (0, 2));
    check("\x1b[2Ea\x1b[Fb", &["", "b", "a"], (1, 1));
    // Behind the last column, the cursor leaves a row from the last column.
    check("\x1b[2;1H0123456789\x1b[AY", &["         Y", "0123456789"], (0, 9));
    check("0123456789\x1b[BY", &["0123456789", "         Y"], (1, 9));
    check("0123456789\x1b[3dY", &["0123456789", "", "         Y"], (2, 9));
    check("0123456789\x1b[2eY", &["0123456789", "", "         Y"], (2, 9));
}

#[test]
fn erasing_inserting_and_deleting_move_the_rest() {
    check("abcdef\x1b[3D\x1b[K", &["abc"], (0, 3));
    check("abcdef\x1b[3D\x1b[1K", &["    ef"], (0, 3));
    check("abcdef\x1b[2K", &[], (0, 6));
    check("a\r\nb\r\nc\x1b[2;1H\x1b[J", &["a"], (1, 0));
    check("a\r\nb\r\nc\x1b[2;1H\x1b[1J", &["", "", "c"], (1, 0));
    check("a\r\nb\x1b[2J", &[], (1, 1));
    check("abcdef\x1b[1;3H\x1b[2@", &["ab  cdef"], (0, 2));
    check("abcdef\x1b[1;3H\x1b[2P", &["abef"], (0, 2));
    check("abcdef\x1b[1;3H\x1b[2X", &["ab  ef"], (0, 2));
    check("a\r\nb\r\nc\x1b[2;1H\x1b[L", &["a", "", "b", "c"], (1, 0));
    check("a\r\nb\r\nc\x1b[1;1H\x1b[M", &["b", "c"], (0, 0));
    check("a\x1b[3bb", &["aaaab"], (0, 5));
    check("abc\x1b[1;1H\x1b[4hxy\x1b[4lz", &["xyzbc"], (0, 3));
}

#[test]
fn a_region_scrolls_alone() {
    let lines = "1\r\n2\r\n3\r\n4\r\n5";
    check(&format!("{lines}\x1b[2;4r\x1b[4;1H\nx"), &["1", "3", "4", "x", "5"], (3, 1));
    check(&format!("{lines}\x1b[2;4r\x1b[2;1H\x1bMx"), &["1", "x", "2", "3", "5"], (1, 1));
    check(&format!("{lines}\x1b[2;4r\x1b[S"), &["1", "3", "4", "", "5"], (0, 0));
    check(&format!("{lines}\x1b[2;4r\x1b[T"), &["1", "", "2", "3", "5"], (0, 0));
    check(&format!("{lines}\x1b[2;4r\x1b[?6h\x1b[1;1Hx"), &["1", "x", "3", "4", "5"], (1, 1));
}

#[test]
fn tabs_stop_where_they_were_set() {
    check("a\tb", &["a       b"], (0, 9));
    check("a\t\tb", &["a        b"], (0, 9));
    check("\x1b[3g\x1b[1;4H\x1bH\ra\tb\tc", &["a  b     c"], (0, 9));
    check("\x1b[1;9Hx\x1b[Zy", &["        y"], (0, 9));
    check("\x1b[1;8Hx\x1b[2Zy", &["y      x"], (0, 1));
    check("\x1b[Ix", &["        x"], (0, 9));
    check("\x1b[1;9H\x1b[g\ra\tb", &["a        b"], (0, 9));
}

#[test]
fn lines_and_boxes_are_drawn() {
    check("\x1b(0lqk\x1b(B lqk", &["┌─┐ lqk"], (0, 7));
    check("\x1b)0a\x0ex\x0fx", &["a│x"], (0, 3));
    check("\x1b(0\x1b7\x1b(Bx\x1b8x", &["│"], (0, 1));
    check("\x1b(0x\x1b[!px", &["│x"], (0, 2));
    check("\x1b(0x\x1bcx", &["x"], (0, 1));
}

#[test]
fn the_edge_holds_where_wrapping_is_off() {
    check("\x1b[?7l0123456789abc", &["012345678c"], (0, 9));
    check("\x1b[?7l0123456789abc\x1b[?7hde", &["012345678d", "e"], (1, 1));
    check("\x1b[?7l012345678漢z", &["012345678z"], (0, 9));
}

#[test]
fn the_alternate_screen_gives_the_first_one_back() {
    check("main\x1b[?1049h\x1b[Hother\x1b[?1049l", &["main"], (0, 4));
    check("main\x1b[?1047h\x1b[Hother\x1b[?1047l", &["main"], (0, 5));
    check("main\x1b[?47h\x1b[Hother\x1b[?47l", &["main"], (0, 5));
    check("ab\x1b[?1049hx", &["  x"], (0, 3));
    check("ab\x1b[?47hx", &["  x"], (0, 3));
    check("ab\x1b[?1047hx", &["  x"], (0, 3));
    let mut screen = shown("main\x1b[?1049h\x1b[Hother");
    let snapshot = screen.snapshot(0);
    assert_eq!((snapshot.is_alternate, snapshot.rows[0].text.as_str()), (true, "other"));
}

#[test]
fn titles_and_modes_are_told() {
    let mut screen =
        shown("\x1b]0;one\x07\x1b]2;two\x1b\\x\x1b[?2004h\x1b[?1h\x1b[?25l\x1b[?1000h");
    let snapshot = screen.snapshot(0);
    let modes = TerminalModes {
        application_cursor: true,
        application_keypad: false,
        bracketed_paste: true,
        mouse: true,
    };
    let cursor = CursorPosition { row: 0, column: 1, is_visible: false };
    assert_eq!((snapshot.title.as_str(), snapshot.modes, snapshot.cursor), ("two", modes, cursor));
    check("a\x1b]8;;file:///x\x1b\\link\x1b]8;;\x1b\\b", &["alinkb"], (0, 6));
    check("a\x1bP1$r0m\x1b\\b\x1b_anything\x1b\\c", &["abc"], (0, 3));
}

#[test]
fn looks_are_told_in_runs() {
    let mut screen = shown("a\x1b[1;31mbc\x1b[0;48;5;200md\x1b[38;2;1;2;3;7me\x1b[0mf");
    let row = screen.snapshot(0).rows.remove(0);
    let usual = CellStyle::default();
    let expected = [
        CellRun {
            column: 1,
            columns: 2,
            look: CellStyle { foreground: CellColor::Index(1), bold: true, ..usual },
        },
        CellRun {
            column: 3,
            columns: 1,
            look: CellStyle { background: CellColor::Index(200), ..usual },
        },
        CellRun {
            column: 4,
            columns: 1,
            look: CellStyle {
                foreground: CellColor::Rgb(1, 2, 3),
                background: CellColor::Index(200),
                inverse: true,
                ..usual
            },
        },
    ];
    assert_eq!((row.text.as_str(), row.runs.as_slice()), ("abcdef", &expected[..]));
}

#[test]
fn rows_that_left_the_top_can_be_seen_up_to_a_maximum() {
    let mut screen = TerminalScreen::new(SIZE);
    for n in 0..SCROLLBACK_ROWS_MAX + 20 {
        screen.apply_bytes(format!("{n}\r\n").as_bytes());
    }
    let texts = |snapshot: &ScreenSnapshot| -> Vec<String> {
        snapshot.rows.iter().map(|row| row.text.clone()).collect()
    };
    let back = screen.snapshot(3);
    assert_eq!((back.scrollback_rows, back.rows_back), (SCROLLBACK_ROWS_MAX, 3));
    assert_eq!(texts(&back), ["1013", "1014", "1015", "1016", "1017"]);
    assert_eq!(texts(&screen.snapshot(usize::MAX))[0], "16");
    screen.apply_bytes(b"\x1b[3J");
    assert_eq!(screen.snapshot(1).scrollback_rows, 0);
}

#[test]
fn a_line_that_did_not_fit_is_one_line_of_text() {
    let mut screen = shown("0123456789abc\r\nnext");
    assert_eq!(screen.visible_text(), "0123456789abc\nnext");
    assert!(screen.snapshot(0).rows[0].is_wrapped);
}

#[test]
fn a_painting_looks_like_what_it_was_painted_from() {
    let mut screen =
        shown("\x1b]2;vi\x07a\x1b[?1049h\x1b[2;3H\x1b[1;32mgreen\x1b[0m\x1b[?2004h\x1b[?1h");
    let mut painted = TerminalScreen::new(SIZE);
    painted.apply_bytes(&screen.paint());
    assert_eq!(painted.snapshot(0), screen.snapshot(0));
}

#[test]
fn a_screen_is_never_larger_than_what_is_kept() {
    let mut screen = TerminalScreen::new(PtySize { rows: u16::MAX, columns: u16::MAX });
    assert_eq!(screen.size(), PtySize { rows: ROWS_MAX, columns: COLUMNS_MAX });
    screen.apply_bytes(b"x");
    screen.resize(PtySize { rows: 0, columns: 0 });
    screen.apply_bytes(b"yz");
    assert_eq!(screen.snapshot(0).rows[0].text, "z");
}

fn control() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![Just(0_u32), 1..12_u32, Just(65_535), Just(99_999_999)];
    (prop::collection::vec(number, 0..4), "[?!> ]?", 0x40..0x7f_u8).prop_map(
        |(numbers, mark, last)| {
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            let mut bytes = format!("\x1b[{mark}{}", numbers.join(";")).into_bytes();
            bytes.push(last);
            bytes
        },
    )
}

/// Pieces of which hostile output consists.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => control(),
        1 => prop::collection::vec(any::<u8>(), 0..12),
        1 => "[ -~漢é\u{301}\t\r\n]{0,12}".prop_map(String::into_bytes),
        1 => (0x20..0x7f_u8).prop_map(|byte| vec![ESC, byte]),
    ]
}

const ESC: u8 = 0x1b;

proptest! {
    #[test]
    fn nothing_that_is_said_trips_a_screen(
        pieces in prop::collection::vec((piece(), prop::option::of((0..12_u16, 0..12_u16))), 0..40),
    ) {
        let mut screen = TerminalScreen::new(SIZE);
        for (bytes, size) in pieces {
            screen.apply_bytes(&bytes);
            prop_assert!(screen.parts.is_some(), "it was tripped");
            if let Some((rows, columns)) = size {
                screen.resize(PtySize { rows, columns });
                prop_assert!(screen.parts.is_some(), "it was tripped");
            }
            prop_assert_eq!(screen.snapshot(3).rows.len(), usize::from(screen.size().rows));
            screen.paint();
            screen.visible_text();
        }
    }
}

proptest! {
    #[test]
    fn it_makes_no_difference_in_which_pieces_something_is_said(
        pieces in prop::collection::vec(
            prop_oneof![control(), "[ -~\t\r\n]{0,12}".prop_map(String::into_bytes)], 0..40
        ),
    ) {
        let (mut at_once, mut bit_by_bit) = (TerminalScreen::new(SIZE), TerminalScreen::new(SIZE));
        let said = pieces.concat();
        at_once.apply_bytes(&said);
        said.iter().for_each(|byte| bit_by_bit.apply_bytes(std::slice::from_ref(byte)));
        prop_assert_eq!(at_once.snapshot(0), bit_by_bit.snapshot(0));
        prop_assert_eq!(at_once.paint(), bit_by_bit.paint());
    }
}

#[test]
fn a_program_that_asks_its_terminal_is_answered_as_things_stood_when_it_asked() {
    for (said, answers) in [
        ("\x1b[c\x1b[0c", "\x1b[?62;22c\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;0;0c"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[2;3H\x1b[6n\x1b[4;4H", "\x1b[2;3R"),
        ("\x1b[?6n", "\x1b[?1;1R"),
        ("\x1b[999;999H\x1b[6n", "\x1b[5;10R"),
        ("0123456789\x1b[6n", "\x1b[1;10R"),
        ("\x1b[18t", "\x1b[8;5;10t"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b[7n\x1b[=c\x1b[1c\x1b[14t\x1b]11;rgb:1/1/1\x07\x1b]12;?\x07", ""),
    ] {
        let mut screen = TerminalScreen::new(PtySize { rows: 5, columns: 10 });
        screen.apply_bytes(said.as_bytes());
        assert_eq!(String::from_utf8(screen.take_answers()).unwrap(), answers, "{said:?}");
        assert_eq!(screen.take_answers(), b"", "one answer is enough");
    }
    let mut screen = TerminalScreen::new(SIZE);
    screen.apply_bytes("\x1b[6n".repeat(100_000).as_bytes());
    assert!(screen.take_answers().len() <= 4 << 10, "answers that nobody reads are not kept");
}

#[test]
fn a_flood_leaves_what_it_would_leave_if_all_of_it_were_heard() {
    let size = PtySize { rows: 10, columns: 40 };
    let lines: String =
        (0..4_000).map(|n| format!("{n} {}\r\n", "word é 漢字\t".repeat(n % 9))).collect();
    let begun = [
        "",
        "in the middle",
        "\x1b[3;6r\x1b[4;1H",
        "\x1b[4;10rH1\r\nH2\r\nH3\r\n",
        "\x1b[1;5r\x1b[10;1H",
        "\x1b[1;5r\x1b[10;1H\x1b[?47h\x1b[r\x1b[?47l",
        "\x1b[2;5r\x1b[10;1H\x1b[!p",
        "\x1b[?1049h\x1b[2;2H",
        "\x1b]0;a title without an end",
        "\x1b[31",
        "\x1b[?7l\x1b[9;30H",
    ];
    for begun in begun {
        for ends in ["", "last words", "\x1b[2A\x1b[1mbold", "\n\n\x1b[r\x1b[?1049l"] {
            let said = [begun, lines.as_str(), ends].concat();
            let (mut floods, mut goes_on, mut hears_all) =
                (TerminalScreen::new(size), TerminalScreen::new(size), TerminalScreen::new(size));
            let pieces: Vec<_> = said.as_bytes().chunks(997).map(Bytes::copy_from_slice).collect();
            assert!(super::flood::unseen(&pieces, 1_010).is_some() || ends.contains('\x1b'));
            floods.skim(1, &pieces);
            for some in pieces.chunks(30) {
                goes_on.skim(1, some);
            }
            hears_all.apply_bytes(said.as_bytes());
            hears_all.skim(1, &[]);
            floods.finish();
            goes_on.finish();
            for rows_back in [0, 10, 500, SCROLLBACK_ROWS_MAX] {
                let right = hears_all.snapshot(rows_back);
                assert_eq!(floods.snapshot(rows_back), right, "{begun:?} {ends:?} {rows_back}");
                assert_eq!(goes_on.snapshot(rows_back), right, "{begun:?} {ends:?} {rows_back}");
            }
        }
    }
}
