create role app;
