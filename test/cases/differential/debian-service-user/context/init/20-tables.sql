create table t ();
