//! Tokens become an expression. Macros are expanded on the way, as cel-go does.

mod primary;

use crate::{
    ast::{Expr, ExprKind, Fold, Id},
    issues::Issues,
    lexer::{Lexeme, Token, tokens},
    value::Value,
};

/// A text may have this many characters.
const LONGEST_TEXT: usize = 100_000;
/// No rule of the grammar may be within itself more often.
const DEEPEST: usize = 250;
/// Expanded expressions are walked by functions that call themselves; this many levels fit on a thread's stack.
const DEEPEST_EXPANDED: u32 = 600;

const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// What a primary expression can begin with, as the reference's parser generator writes it.
const BEGINNINGS: &str = "'[', '{', '(', '.', '-', '!', ";
const LITERALS: &str = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

pub(crate) struct Parsed {
    pub(crate) root: Expr,
    /// By id: where it stands, in characters.
    pub(crate) offsets: Vec<usize>,
}

pub(crate) fn parse(text: &str, issues: &mut Issues) -> Option<Parsed> {
    let length = text.chars().count();
    if length > LONGEST_TEXT {
        issues.report(
            0,
            format!("expression code point size exceeds limit: size: {length}, limit {LONGEST_TEXT}"),
        );
        return None;
    }
    let lexemes = tokens(text, issues);
    let mut parser = Parser { text, lexemes, next: 0, issues, offsets: vec![0], depths: [0; RULES] };
    let parsed = parser.start();
    let root = match parsed {
        Ok(root) => root,
        Err(Stop) => return None,
    };
    let offsets = parser.offsets;
    if !issues.is_empty() {
        return None;
    }
    if expanded_depth(&root) > DEEPEST_EXPANDED {
        issues.report(
            0,
            format!("expression nests deeper than {DEEPEST_EXPANDED} levels when macros are expanded"),
        );
        return None;
    }
    Some(Parsed { root, offsets })
}

/// Without calling itself: the expression may be deeper than the stack.
fn expanded_depth(root: &Expr) -> u32 {
    let mut deepest = 0;
    let mut open = vec![(root, 1)];
    while let Some((expr, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(expr.children().into_iter().map(|child| (child, depth + 1)));
    }
    deepest
}

/// Nothing more can be parsed; there is an issue.
pub(crate) struct Stop;

type Result<T> = std::result::Result<T, Stop>;

/// An expression and how deep the reference's visitor goes for it.
struct Visited {
    expr: Expr,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Rule {
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
}

const RULES: usize = 8;

pub(crate) struct Parser<'t, 'i> {
    text: &'t str,
    lexemes: Vec<Lexeme<'t>>,
    next: usize,
    issues: &'i mut Issues,
    offsets: Vec<usize>,
    depths: [usize; RULES],
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Lexeme<'t> {
        self.lexemes[self.next]
    }

    fn behind(&self) -> Token {
        self.lexemes.get(self.next + 1).map_or(Token::End, |lexeme| lexeme.token)
    }

    fn advance(&mut self) -> Lexeme<'t> {
        let lexeme = self.peek();
        if lexeme.token != Token::End {
            self.next += 1;
        }
        lexeme
    }

    fn take(&mut self, token: Token) -> Option<Lexeme<'t>> {
        (self.peek().token == token).then(|| self.advance())
    }

    pub(crate) fn id(&mut self, offset: usize) -> Id {
        self.offsets.push(offset);
        (self.offsets.len() - 1) as Id
    }

    pub(crate) fn expressions(&self) -> usize {
        self.offsets.len()
    }

    pub(crate) fn offset_of(&self, id: Id) -> usize {
        self.offsets[id as usize]
    }

    pub(crate) fn report(&mut self, offset: usize, message: impl Into<String>) -> Expr {
        self.issues.report(offset, message);
        Expr { id: self.id(offset), kind: ExprKind::Broken }
    }

    fn syntax_error(&mut self, offset: usize, message: &str) {
        self.issues.report(offset, format!("Syntax error: {message}"));
    }

    fn enter(&mut self, rule: Rule) -> Result<()> {
        let depth = &mut self.depths[rule as usize];
        *depth += 1;
        if *depth > DEEPEST {
            self.issues.report(0, format!("expression recursion limit exceeded: {DEEPEST}"));
            return Err(Stop);
        }
        Ok(())
    }

    fn leave(&mut self, rule: Rule, times: usize) {
        self.depths[rule as usize] -= times;
    }

    fn deeper(&mut self, expr: Expr, within: usize) -> Result<Visited> {
        if within + 1 > DEEPEST {
            self.issues.report(0, "max recursion depth exceeded");
            return Err(Stop);
        }
        Ok(Visited { expr, depth: within + 1 })
    }

    fn start(&mut self) -> Result<Expr> {
        let root = self.expr(false)?;
        let rest = self.peek();
        if rest.token != Token::End {
            let what = if self.behind() == Token::End { "extraneous" } else { "mismatched" };
            self.syntax_error(rest.offset, &format!("{what} input '{}' expecting <EOF>", rest.text));
        }
        Ok(root.expr)
    }

    fn expr(&mut self, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Expr)?;
        let condition = self.or(may_be_optional)?;
        let visited = match self.take(Token::Question) {
            None => condition,
            Some(question) => {
                let id = self.id(question.offset);
                let yes = self.or(false)?;
                self.expect(Token::Colon, "':'")?;
                let no = self.expr(false)?;
                let depth = condition.depth.max(yes.depth).max(no.depth);
                let args = vec![condition.expr, yes.expr, no.expr];
                self.deeper(global(id, "_?_:_", args), depth)?
            }
        };
        self.leave(Rule::Expr, 1);
        Ok(visited)
    }

    fn expect(&mut self, token: Token, shown: &str) -> Result<Lexeme<'t>> {
        if let Some(found) = self.take(token) {
            return Ok(found);
        }
        let found = self.peek();
        if self.behind() == token && found.token != Token::End {
            self.syntax_error(found.offset, &format!("extraneous input '{}' expecting {shown}", found.text));
            self.advance();
            return Ok(self.advance());
        }
        self.syntax_error(found.offset, &format!("mismatched input '{}' expecting {shown}", found.text));
        Err(Stop)
    }

    fn or(&mut self, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Or)?;
        let visited = self.chain(Token::Or, "_||_", may_be_optional, Self::and)?;
        self.leave(Rule::Or, 1);
        Ok(visited)
    }

    fn and(&mut self, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::And)?;
        let visited =
            self.chain(Token::And, "_&&_", may_be_optional, |parser, optional| parser.relation(0, optional))?;
        self.leave(Rule::And, 1);
        Ok(visited)
    }

    /// Terms with the same logical operator between them, as a balanced tree.
    fn chain(
        &mut self,
        token: Token,
        function: &str,
        may_be_optional: bool,
        term: fn(&mut Self, bool) -> Result<Visited>,
    ) -> Result<Visited> {
        let first = term(self, may_be_optional)?;
        let mut depth = first.depth;
        let mut terms = vec![Some(first.expr)];
        let mut operators = Vec::new();
        while let Some(operator) = self.take(token) {
            let next = term(self, false)?;
            depth = depth.max(next.depth);
            terms.push(Some(next.expr));
            operators.push(self.id(operator.offset));
        }
        let expr = balanced(function, &mut terms, &operators);
        Ok(Visited { expr, depth })
    }

    fn relation(&mut self, level: usize, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Relation)?;
        let mut entered = 1;
        let mut left = self.calc(0, may_be_optional)?;
        if level == 0 {
            while let Some(function) = relation_of(self.peek().token) {
                let operator = self.advance();
                self.enter(Rule::Relation)?;
                entered += 1;
                let id = self.id(operator.offset);
                let right = self.relation(1, false)?;
                left = self.binary(id, function, left, right)?;
            }
        }
        self.leave(Rule::Relation, entered);
        Ok(left)
    }

    fn calc(&mut self, level: usize, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Calc)?;
        let mut entered = 1;
        let mut left = self.unary(may_be_optional)?;
        while let Some((function, binds)) = calc_of(self.peek().token) {
            if binds < level {
                break;
            }
            let operator = self.advance();
            self.enter(Rule::Calc)?;
            entered += 1;
            let id = self.id(operator.offset);
            let right = self.calc(binds + 1, false)?;
            left = self.binary(id, function, left, right)?;
        }
        self.leave(Rule::Calc, entered);
        Ok(left)
    }

    fn binary(&mut self, id: Id, function: &str, left: Visited, right: Visited) -> Result<Visited> {
        let depth = left.depth.max(right.depth);
        self.deeper(global(id, function, vec![left.expr, right.expr]), depth)
    }

    fn unary(&mut self, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Unary)?;
        let token = self.peek().token;
        let signed = |token| matches!(token, Token::Int | Token::Float);
        let visited = match token {
            Token::Not => self.prefixed(token, "!_")?,
            Token::Minus if !signed(self.behind()) => self.prefixed(token, "-_")?,
            _ => self.member(may_be_optional)?,
        };
        self.leave(Rule::Unary, 1);
        Ok(visited)
    }

    /// An even number of the same prefix is none.
    fn prefixed(&mut self, token: Token, function: &str) -> Result<Visited> {
        let first = self.advance();
        let mut count = 1;
        while self.take(token).is_some() {
            count += 1;
        }
        let id = self.id(first.offset);
        let member = self.member(false)?;
        if count % 2 == 0 {
            return Ok(member);
        }
        Ok(Visited { expr: global(id, function, vec![member.expr]), depth: member.depth })
    }

    fn member(&mut self, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Member)?;
        let mut entered = 1;
        let mut visited = self.primary(may_be_optional)?;
        loop {
            let operator = self.peek();
            visited = match operator.token {
                Token::Dot => {
                    self.enter(Rule::Member)?;
                    self.advance();
                    self.selected(visited, operator)?
                }
                Token::OpenBracket => {
                    self.enter(Rule::Member)?;
                    self.advance();
                    self.indexed(visited, operator)?
                }
                _ => break,
            };
            entered += 1;
        }
        self.leave(Rule::Member, entered);
        Ok(visited)
    }

    fn selected(&mut self, of: Visited, dot: Lexeme<'t>) -> Result<Visited> {
        let optional = self.take(Token::Question).is_some();
        let name = self.peek();
        if !matches!(name.token, Token::Ident | Token::EscapedIdent) {
            return self.no_name(dot, name);
        }
        self.advance();
        if name.token == Token::EscapedIdent {
            let broken = self.report(name.offset, "unsupported syntax: '`'");
            return Ok(Visited { expr: broken, depth: of.depth });
        }
        if !optional && self.peek().token == Token::OpenParen {
            let open = self.advance();
            let id = self.id(open.offset);
            let (args, depth) = self.arguments()?;
            let depth = depth.max(of.depth);
            let expr = self.receiver_call(id, name.text, of.expr, args);
            return self.deeper(expr, depth);
        }
        let expr = if optional {
            let id = self.id(dot.offset);
            let field = Expr { id: self.id(name.offset), kind: ExprKind::Literal(Value::text(name.text)) };
            global(id, "_?._", vec![of.expr, field])
        } else {
            let id = self.id(dot.offset);
            let kind =
                ExprKind::Select { operand: Box::new(of.expr), field: name.text.into(), test_only: false };
            Expr { id, kind }
        };
        self.deeper(expr, of.depth)
    }

    fn no_name(&mut self, dot: Lexeme<'t>, found: Lexeme<'t>) -> Result<Visited> {
        let message = match found.token {
            Token::True | Token::False | Token::Null => {
                format!("mismatched input '{}' expecting IDENTIFIER", found.text)
            }
            Token::End => format!("no viable alternative at input '{}'", self.text[dot.at..].trim_end()),
            _ => {
                let end = found.at + found.text.len();
                format!("no viable alternative at input '{}'", &self.text[dot.at..end])
            }
        };
        self.syntax_error(found.offset, &message);
        Err(Stop)
    }

    fn indexed(&mut self, of: Visited, open: Lexeme<'t>) -> Result<Visited> {
        let optional = self.take(Token::Question).is_some();
        let id = self.id(open.offset);
        let index = self.expr(!optional)?;
        self.expect(Token::CloseBracket, "']'")?;
        let function = if optional { "_[?_]" } else { "_[_]" };
        let depth = of.depth.max(index.depth);
        self.deeper(global(id, function, vec![of.expr, index.expr]), depth)
    }

    fn arguments(&mut self) -> Result<(Vec<Expr>, usize)> {
        let mut args = Vec::new();
        let mut depth = 0;
        if self.take(Token::CloseParen).is_some() {
            return Ok((args, depth));
        }
        loop {
            let arg = self.expr(false)?;
            depth = depth.max(arg.depth);
            args.push(arg.expr);
            if self.take(Token::Comma).is_none() {
                break;
            }
        }
        self.expect(Token::CloseParen, "')'")?;
        Ok((args, depth))
    }
}

fn balanced(function: &str, terms: &mut [Option<Expr>], operators: &[Id]) -> Expr {
    if operators.is_empty() {
        return terms[0].take().unwrap_or(Expr { id: 0, kind: ExprKind::Broken });
    }
    let middle = operators.len() / 2;
    let (left, right) = terms.split_at_mut(middle + 1);
    let left = balanced(function, left, &operators[..middle]);
    let right = balanced(function, right, &operators[middle + 1..]);
    global(operators[middle], function, vec![left, right])
}

pub(crate) fn global(id: Id, function: &str, args: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call { function: function.into(), target: None, args } }
}

pub(crate) fn fold(id: Id, fold: Fold) -> Expr {
    Expr { id, kind: ExprKind::Fold(Box::new(fold)) }
}

fn relation_of(token: Token) -> Option<&'static str> {
    Some(match token {
        Token::Less => "_<_",
        Token::LessEquals => "_<=_",
        Token::GreaterEquals => "_>=_",
        Token::Greater => "_>_",
        Token::Equals => "_==_",
        Token::NotEquals => "_!=_",
        Token::In => "@in",
        _ => return None,
    })
}

/// The function and how strongly it binds.
fn calc_of(token: Token) -> Option<(&'static str, usize)> {
    Some(match token {
        Token::Star => ("_*_", 1),
        Token::Slash => ("_/_", 1),
        Token::Percent => ("_%_", 1),
        Token::Plus => ("_+_", 0),
        Token::Minus => ("_-_", 0),
        _ => return None,
    })
}
