package dray.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.SQLException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ReadOnlyTest {
    @ParameterizedTest
    @ValueSource(strings = {"SELECT 1", " ((select 1))", "\n\tWith x AS (SELECT 1) SELECT 2",
        "values (1)", "SELECT(1)", "select'1'", "SELECT*FROM t"})
    void reads(String sql) {
        assertTrue(ReadOnly.reads(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", ";", "COMMIT", "-- a\nSELECT 1", "/* a */ SELECT 1", "SELECTED",
        "SELECT_1", "SELECT1", "SELECT$", "SELECTé", "; SELECT 1", "\0SELECT 1", "\u00a0SELECT 1",
        "{call p()}", "SHOW x", "EXPLAIN SELECT 1", "(DELETE FROM t)", "1"})
    void mayWrite(String sql) {
        assertFalse(ReadOnly.reads(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT 1", "/* a */ SELECT 1", "-- a\n (--\nselect 1)",
        "/* /* a */ -- */ WITH x AS (SELECT 1) SELECT 2", "TABLE t", "show x", "EXPLAIN SELECT 1",
        "/**/INSERT INTO t VALUES (1) RETURNING i", "delete from t returning i"})
    void isTransactional(String sql) {
        assertTrue(ReadOnly.isTransactional(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "VACUUM", "-- SELECT 1", "/* SELECT 1", "/* SELECT */ VACUUM",
        "CREATE INDEX CONCURRENTLY x ON t (i)", "SELECTED", "CALL p()"})
    void isNotTransactional(String sql) {
        assertFalse(ReadOnly.isTransactional(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT 1", "SELECT 1;", "SELECT 1 ;\n", "SELECT ';'", "SELECT \";\"",
        "SELECT 'it''s; so' AS \"a;b\"; ", "SELECT '\\'", "SELECT $1 -- #"})
    void isOne(String sql) {
        assertTrue(ReadOnly.isOne(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT 1; SELECT 2", "SELECT 1;;", "SELECT '\\'; COMMIT --'",
        "SELECT $$'$$; COMMIT; SELECT ';'", "SELECT 1 -- '\n; COMMIT", "SELECT `'`; COMMIT; `'`",
        "SELECT 1 /* ' */; COMMIT /* ' */", "SELECT 1 # '\n; COMMIT # '", "SELECT '; COMMIT",
        "SELECT [']; COMMIT; SELECT [']"})
    void mayBeSeveral(String sql) {
        assertFalse(ReadOnly.isOne(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT 1", "SELECT committed, set_1, _commit, execs FROM t",
        "SELECT 'COMMIT', \"exec\", [rollback], '''commit''' -- commit\n/* EXEC p */",
        "SELECT commit, t.rollback, \"t\".set, [t].call, load FROM t WHERE kill = 1",
        "SELECT x AS commit FROM t ORDER BY load DESC, backup",
        "SELECT \u00e9t.x AS commit, load AS a$b FROM #t WHERE @x = kill",
        "SELECT commit AS c, max(dump), (load) FROM t GROUP BY call HAVING kill > 1",
        "SELECT truncate(1.5, 1), {fn TRUNCATE(1.5, 1)}",
        "SELECT CAST(a AS char CHARACTER SET utf8mb4) FROM t",
        "SELECT '%' FROM t WHERE a LIKE '100%' -- 'commit'\r\n", "SELECT a % 2 FROM t",
        "SELECT 1 // 2", "SELECT 'C:\\'"})
    void beginsNoOther(String sql) {
        assertNull(Words.beginningAnother(sql));
    }

    @ParameterizedTest
    @ValueSource(strings = {"COMMIT SELECT 1 AS x DELETE FROM t COMMIT",
        "COMMIT SELECT 1 delete from t commit tran select 2", "COMMIT SELECT 1 COMMIT(SELECT 1)",
        "COMMIT SELECT 1COMMIT", "COMMIT SELECT 1.COMMIT", "COMMIT SELECT 1eCOMMIT",
        "COMMIT SELECT 'a'COMMIT", "COMMIT SELECT $COMMIT", "COMMIT SELECT 1\u00a0COMMIT",
        "COMMIT SELECT 1/**/COMMIT--", "COMMIT SELECT 1 -- a\nCOMMIT",
        "COMMIT SELECT 1 IF 1 = 1 BEGIN COMMIT END", "EXEC SELECT 1 EXEC sp_executesql N'COMMIT'",
        "EXEC SELECT 1 EXEC ('COM' + 'MIT')", "EXECUTE SELECT 1 execute [p]",
        "EXECUTE SELECT 1 EXECUTE AS USER = 'x'", "ROLLBACK SELECT 1 ROLLBACK",
        "SET SELECT 1 SET IMPLICIT_TRANSACTIONS OFF",
        "SET SELECT 1 CHARACTER SET IMPLICIT_TRANSACTIONS OFF", "SET SELECT 1 SET @a = 1",
        "KILL SELECT 1 KILL 55", "CALL SELECT 1 {call p()}", "CALL SELECT 1 CALL \"p\"()",
        "CREATE SELECT 1 CREATE TABLE t (i int)", "TRUNCATE SELECT 1 TRUNCATE TABLE t",
        "SHUTDOWN SELECT 1 SHUTDOWN", "COMMIT SELECT 1 AS a$as COMMIT",
        "COMMIT SELECT * FROM #as COMMIT", "COMMIT SELECT @as COMMIT",
        "COMMIT SELECT 1 \u00e9as COMMIT", "COMMIT SELECT 1 as\u00e9 COMMIT",
        "COMMIT SELECT 1 COMMIT as#l: SELECT 2", "COMMIT SELECT 1 COMMIT in\u00e9: SELECT 2",
        "COMMIT SELECT $e.COMMIT", "CALL SELECT 1 {call \u00e9p()}", "CALL SELECT 1 {call #p()}",
        "KILL SELECT (1) KILL $x)", "COMMIT SELECT 'a\\' COMMIT --'",
        "COMMIT SELECT 'a\\' , ' COMMIT '", "COMMIT SELECT 1 --\r'\nCOMMIT --'",
        "COMMIT SELECT 1 /* /* */ ' */ COMMIT -- '", "COMMIT SELECT 1 /*/*/ ' */ */ COMMIT -- '",
        "COMMIT SELECT 1 // '\n COMMIT // '", "COMMIT SELECT 1 % '\n COMMIT % '",
        "COMMIT SELECT [a]] ' [b] COMMIT '", "COMMIT SELECT ['] COMMIT [']",
        "COMMIT SELECT 'COMMIT", "COMMIT SELECT \"commit"})
    void mayBeginAnother(String wordAndSql) {
        String[] parts = wordAndSql.split(" ", 2);
        assertEquals(parts[0], Words.beginningAnother(parts[1]));
        var refused = assertThrows(Failure.class, () -> ReadOnly.check("s", parts[1]));
        assertEquals("25006", refused.sqlstate());
        assertTrue(refused.getMessage().contains("the word " + parts[0] + " may begin"));
    }

    @Test
    void longStatements() {
        String list = "'commit',".repeat(200_000);
        assertNull(Words.beginningAnother("SELECT 1 IN (" + list + " 1)"));
        assertEquals("COMMIT", Words.beginningAnother("SELECT 1 IN (" + list + " 1) COMMIT"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc:postgresql://h/d?user=u&password=s3cret&ssl=true",
        "jdbc:derby://h:1527/d;user=u;password=s3cret", "jdbc:h2:~/x;USER=sa;PASSWORD=s3cret",
        "jdbc:oracle:thin:scott/s3cret@//h:1521/x", "jdbc:db2://h:50000/d:user=u;password=s3cret;",
        "jdbc:sqlserver://h;user=u;trustStorePassword=s3cret;x=y", "jdbc:x://u:s3cret@h/d",
        "jdbc:x://u:p/a:s3cret@h/d?y=x@z",
        "jdbc:mysql://address=(host=h)(user=u)(password=s3cret)/d",
        "jdbc:x://h?private_key=s3cret",
        "jdbc:x://h?password=s%33cret"})
    void secrets(String uri) {
        assertEquals("the password *** is wrong",
                new Secrets(uri).hide("the password s3cret is wrong"), uri);
        assertEquals("***: no", new Secrets(uri).hide(uri + ": no"));
        assertEquals("host h of u", new Secrets(uri).hide("host h of u"));
    }

    @Test
    void passwordsInLongErrors() {
        var errors = new Errors("jdbc:x://h/d?password=s3cret");
        for (int length = 9_980; length < 10_010; length++) {
            var error = new SQLException("x".repeat(length) + "s3cret");
            String message = errors.ofStatement(error, new Cancellation(null)).getMessage();
            assertFalse(message.contains("s"), message);
        }
    }

    @Test
    void nothingToHide() {
        assertEquals("all", new Secrets("jdbc:h2:mem:").hide("all"));
    }
}
