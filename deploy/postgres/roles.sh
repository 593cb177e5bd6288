#!/bin/sh
# Makes the two roles and the database when the volume is new: the tables' owner, and the service, which owns nothing.
set -eu
: "${ANAMNESIS_DB_OWNER_PASSWORD:?}" "${ANAMNESIS_DB_PASSWORD:?}"
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set owner_password="$ANAMNESIS_DB_OWNER_PASSWORD" --set password="$ANAMNESIS_DB_PASSWORD" <<'SQL'
CREATE ROLE anamnesis_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE anamnesis LOGIN PASSWORD :'password';
CREATE DATABASE anamnesis OWNER anamnesis_owner;
SQL
