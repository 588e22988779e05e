-- The tables of a cluster. `clqd run` creates them if section [cluster] of its configuration names an engine.

CREATE TABLE IF NOT EXISTS clq_log (
  seq        BIGINT UNSIGNED   NOT NULL COMMENT 'Number of the batch, without holes; chosen by the writer, so two writers cannot both insert it',
  epoch      BIGINT UNSIGNED   NOT NULL COMMENT 'clq_leader.epoch of the writer',
  version    SMALLINT UNSIGNED NOT NULL COMMENT 'Number of the rules by which the events are applied, rules.number',
  segment    BIGINT UNSIGNED   NOT NULL COMMENT 'seq of the first batch of the segment; a batch can only be read after those before it in its segment',
  segment_id BIGINT UNSIGNED   NOT NULL COMMENT 'Random number of the segment, which the checksum of the batch covers',
  segment_ms BIGINT            NOT NULL COMMENT 'When the segment was begun, Unix ms',
  last_ms    BIGINT            NOT NULL COMMENT 'Time of the last event, Unix ms',
  body       MEDIUMBLOB        NOT NULL COMMENT 'The batch as the log in files has it, compressed with zstd',
  PRIMARY KEY (seq)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='The log of a cluster: everything that changes the state, in order';

CREATE TABLE IF NOT EXISTS clq_leader (
  singleton TINYINT UNSIGNED NOT NULL COMMENT '1: there is at most one row',
  epoch     BIGINT UNSIGNED  NOT NULL COMMENT 'Number of the leader; each engine that takes over takes the next one',
  beat      BIGINT UNSIGNED  NOT NULL COMMENT 'Transactions of this epoch; each one adds 1 and requires its epoch, so an earlier leader cannot commit',
  instance  BIGINT UNSIGNED  NOT NULL COMMENT 'Random number of the process',
  engine    VARCHAR(64)      NOT NULL COMMENT 'Name of the engine, cluster.engine',
  address   VARCHAR(255)     NOT NULL COMMENT 'Where the engine is reached by HTTP, cluster.address; empty: unknown',
  PRIMARY KEY (singleton)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='Which engine writes the log';

CREATE TABLE IF NOT EXISTS clq_engine (
  engine   VARCHAR(64)       NOT NULL COMMENT 'Name of the engine, cluster.engine',
  instance BIGINT UNSIGNED   NOT NULL COMMENT 'Random number of the process',
  address  VARCHAR(255)      NOT NULL COMMENT 'Where the engine is reached by HTTP, cluster.address; empty: unknown',
  version  SMALLINT UNSIGNED NOT NULL COMMENT 'Latest rules.number that it knows',
  seq      BIGINT UNSIGNED   NOT NULL COMMENT 'Last batch that it has applied',
  seen_ms  BIGINT            NOT NULL COMMENT 'When it said so, Unix ms on the clock of its node',
  PRIMARY KEY (engine)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='The engines of a cluster';
