package dray.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
    void nothingToHide() {
        assertEquals("all", new Secrets("jdbc:h2:mem:").hide("all"));
    }
}
