# cmake -D file=FILE -D "path=KEY;INDEX;..." -P json.cmake: prints the value there, or fails if FILE is no JSON or has none.
file(READ ${file} text)
string(JSON value GET "${text}" ${path})
message(NOTICE "${value}")
